package policies

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limits of a demonstration, close to what a careful engineer would do.
const (
	maxReads       = 5 // functions read on the call path from the test to the target
	maxStops       = 3 // at most twice as many breakpoints are tried until one is hit
	minInspections = 2
	maxInspections = 4
)

var (
	errNoFailure = errors.New("the tests show no failure")
	// errNoEvidence means that the program did not stop where the failing test calls a function that
	// the demonstrator has read. The demonstrator then has not seen any values in that function.
	errNoEvidence = errors.New("the program did not stop in a call by the failing test")
)

// investigate performs the whole demonstration.
func (s *script) investigate() error {
	if err := s.act(sayReproduce(), "eval", map[string]any{}); err != nil {
		return err
	}
	failing := s.known.failing()
	if failing.path == "" {
		return errNoFailure
	}
	if err := s.act(sayReadTest(failing), "view", map[string]any{"path": failing.path}); err != nil {
		return err
	}
	if err := s.act(sayMap(), "grep", map[string]any{"pattern": `^\s*(async def|def|class) `, "include": "*.py", "max_results": 500}); err != nil {
		return err
	}
	route, err := s.readRoute(failing)
	if err != nil {
		return err
	}
	stopped, err := s.stopInside(route, failing)
	if err != nil {
		return err
	}
	if !stopped {
		return errNoEvidence
	}
	if err := s.inspect(); err != nil {
		return err
	}
	return s.repair()
}

// hop is a function that can be read next. from is the function that calls it, or "" if the test
// calls it.
type hop struct {
	definition
	from string
}

// readRoute reads functions on the call path from the test to a function that the fix changes. It
// returns them in reverse order, because the last one is the best place for a breakpoint.
func (s *script) readRoute(failing failure) ([]definition, error) {
	goal := s.known.enclosing(s.target)
	var frontier []hop
	for _, d := range s.known.called(s.known.testBody(failing)) {
		frontier = append(frontier, hop{d, ""})
	}
	var read []definition
	for range maxReads {
		next, message := nextHop(frontier, goal, read)
		if next == nil {
			break
		}
		args := map[string]any{"path": next.path, "start": next.line}
		if end := s.known.end(*next); end > 0 {
			args["end"] = end
		}
		if err := s.act(message, "view", args); err != nil {
			return nil, err
		}
		read = append(read, *next)
		if slices.Contains(goal, *next) {
			break
		}
		for _, d := range s.known.called(s.known.body(*next)) {
			frontier = append(frontier, hop{d, next.name})
		}
	}
	slices.Reverse(read)
	return read, nil
}

// nextHop chooses the function to read next and the message for that step. In the frontier it
// prefers a function of the goal, then one in the same file as the goal, then the first that is not
// an error class. If the frontier has none of these or only one read remains, it chooses a function
// of the goal, which the search for definitions has shown.
func nextHop(frontier []hop, goal, read []definition) (next *definition, message string) {
	frontier = slices.DeleteFunc(slices.Clone(frontier), func(h hop) bool { return slices.Contains(read, h.definition) })
	inReach := func(good func(definition) bool) *hop {
		for i := range frontier {
			if good(frontier[i].definition) {
				return &frontier[i]
			}
		}
		return nil
	}
	at := inReach(func(d definition) bool { return slices.Contains(goal, d) })
	if at == nil && len(read) < maxReads-1 {
		at = inReach(func(d definition) bool {
			return !d.class && slices.ContainsFunc(goal, func(g definition) bool { return g.path == d.path })
		})
		if at == nil {
			at = inReach(func(d definition) bool { return !strings.HasSuffix(d.name, "Error") })
		}
	}
	if at != nil {
		return &at.definition, sayFollow(*at)
	}
	for _, g := range goal {
		if !slices.Contains(read, g) {
			return &g, sayUnread(g)
		}
	}
	return nil, ""
}

// stopInside sets breakpoints until the program stops in one of the functions. It reports whether
// the program stopped there in a call by the failing test. It runs only that test, because other
// tests call the functions with other values.
func (s *script) stopInside(route []definition, failing failure) (bool, error) {
	tried, entry := 0, onlyTest(s.known.command, failing.id, true)
	for _, d := range route {
		for _, line := range s.known.stops(d) {
			if tried == maxStops*2 || entry == "" {
				return false, nil
			}
			tried++
			if err := s.runTo(sayBreak(d, line), d, line, entry); err != nil {
				return false, err
			}
			if strings.Contains(s.last.Observation.Text, noSelectText) {
				if entry = onlyTest(s.known.command, failing.id, false); entry == "" {
					return false, nil
				}
				if err := s.runTo(sayNoSelect(), d, line, entry); err != nil {
					return false, err
				}
			}
			if s.last.Observation.TimedOut {
				return false, nil
			}
			if s.failed() {
				continue
			}
			if f := s.known.frame; f != nil && f.Event != "finished" && f.File == d.path && f.Line == line {
				if err := s.act(sayStack(d), "pdb", map[string]any{"command": "w"}); err != nil {
					return false, err
				}
				return !s.failed() && calledByTest(s.last.Observation.Text, failing), nil
			}
			break
		}
	}
	return false, nil
}

// runTo sets a breakpoint and, if the debugger accepts it, runs the program.
func (s *script) runTo(message string, d definition, line int, entry string) error {
	where := fmt.Sprintf("%s:%d", d.path, line)
	err := s.act(message, "pdb", map[string]any{"command": "b " + where, "entrypoint": entry})
	if err != nil || s.failed() {
		return err
	}
	return s.act(sayContinue(where), "pdb", map[string]any{"command": "c"})
}

// inspect prints arguments at the current line, then local variables. If a line of the fix lies
// ahead in the same function, inspect runs to it before it prints the local variables.
func (s *script) inspect() error {
	frame := *s.known.frame
	asked := map[string]bool{}
	good, elsewhere := 0, ""
	look := func(command, message string) error {
		if asked[command] || good == maxInspections {
			return nil
		}
		asked[command] = true
		if err := s.act(elsewhere+message, "pdb", map[string]any{"command": command}); err != nil {
			return err
		}
		elsewhere = ""
		if !s.failed() {
			good++
		}
		return nil
	}
	if err := look("a", sayArguments(frame.Function)); err != nil {
		return err
	}
	if line := s.lineAhead(frame.File, frame.Line); line > 0 {
		if err := s.act(sayUntil(line), "pdb", map[string]any{"command": fmt.Sprintf("until %d", line)}); err != nil {
			return err
		}
		f := s.known.frame
		if s.last.Observation.TimedOut || f == nil || f.Event == "finished" || f.Function != frame.Function || f.Depth != frame.Depth {
			return errNoEvidence
		}
		if f.Line != line {
			elsewhere = sayElsewhere(line, f.Line) + " "
		}
	}
	if f := s.known.frame; f != nil && f.Event != "finished" {
		for _, name := range s.known.locals(f.File, f.Line) {
			if err := look("p "+name, sayPrint(name, s.known.text(f.File, f.Line), f.Line)); err != nil {
				return err
			}
		}
	}
	if s.known.method(frame.File, frame.Line) {
		if err := look("p vars(self)", sayObject()); err != nil {
			return err
		}
	}
	if good < minInspections {
		return look("pp locals()", sayLocals())
	}
	return nil
}

// lineAhead returns an executable line of the fix that a step has shown and that lies ahead in the
// current function. It returns 0 if no line qualifies.
func (s *script) lineAhead(file string, from int) int {
	here := s.known.at(file, from)
	for _, t := range s.target {
		for _, line := range t.lines {
			if t.path == file && line > from && s.known.text(file, line) != "" && s.known.executable(file, line) &&
				here != nil && s.known.at(file, line) != nil && *s.known.at(file, line) == *here {
				return line
			}
		}
	}
	return 0
}

// repair applies the gold edits, runs the tests and submits, even if the tests still fail.
func (s *script) repair() error {
	for i, call := range s.edits {
		call.GoldEdit = true
		if err := s.do(sayEdit(i, len(s.edits)), call); err != nil {
			return err
		}
	}
	if err := s.act(sayEvaluate(), "eval", map[string]any{}); err != nil {
		return err
	}
	message := sayStillFailing()
	if s.last.State != nil && s.last.State.EvalPassed != nil && *s.last.State.EvalPassed {
		message = sayDone()
	}
	return s.act(message, "submit", map[string]any{})
}

// isTest reports whether a file's name marks it as a test.
func isTest(file string) bool {
	base := path.Base(file)
	return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "test.py" || base == "tests.py" ||
		base == "conftest.py" || slices.Contains(strings.Split(path.Dir(file), "/"), "tests")
}
