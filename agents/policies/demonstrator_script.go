package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of a demonstration, close to what a careful engineer would do.
const (
	maxReads       = 5 // functions read on the call path from the test to the target
	maxBreakpoints = 6 // breakpoints tried until the program stops at one
	minInspections = 2
	maxInspections = 4
)

var (
	errNoFailure = errors.New("the tests show no failure")
	// errNoEvidence means that the program did not stop where the failing test calls a function that
	// the demonstrator has read. The demonstrator then has not seen any values in that function.
	errNoEvidence = errors.New("the program did not stop in a call by the failing test")
)

// demonstrate performs the whole demonstration.
func (s *script) demonstrate(edits []schemas.ToolCall) error {
	failing, err := s.reproduce()
	if err != nil {
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
	function := s.evidence.frame.Function
	if err := s.inspect(); err != nil {
		return err
	}
	return s.repair(edits, function)
}

// reproduce runs the tests, reads the failing test, and searches for all definitions.
func (s *script) reproduce() (failure, error) {
	if err := s.act(sayReproduce(), "eval", map[string]any{}); err != nil {
		return failure{}, err
	}
	failing := s.evidence.failure
	s.failing = failing
	if failing.path == "" {
		return failure{}, errNoFailure
	}
	if err := s.act(sayReadTest(failing), "view", map[string]any{"path": failing.path}); err != nil {
		return failure{}, err
	}
	err := s.act(sayMap(), "grep", map[string]any{"pattern": `^\s*(async def|def|class) `, "include": "*.py", "max_results": 500})
	return failing, err
}

// candidate is a function that can be read next.
type candidate struct {
	callee
	caller string // the function or class whose source mentions it, or the id of the test
	byTest bool
}

// readRoute reads functions on the call path from the test to a function that the fix changes. It
// returns them in reverse order, because the last one that it read is the best place for a breakpoint.
func (s *script) readRoute(failing failure) ([]definition, error) {
	goal := s.evidence.goldFunctions(s.target)
	var frontier []candidate
	for _, d := range s.evidence.callees(s.evidence.testBody(failing)) {
		frontier = append(frontier, candidate{d, failing.id, true})
	}
	var read []definition
	for range maxReads {
		next, m := nextCandidate(frontier, goal, read)
		if next == nil {
			break
		}
		args := map[string]any{"path": next.path, "start": next.line}
		if end := s.evidence.lastLine(*next); end > 0 {
			args["end"] = end
		}
		if err := s.act(m, "view", args); err != nil {
			return nil, err
		}
		read = append(read, *next)
		s.read = read
		if slices.Contains(goal, *next) {
			break
		}
		for _, d := range s.evidence.callees(s.evidence.body(*next)) {
			frontier = append(frontier, candidate{d, next.name, false})
		}
	}
	slices.Reverse(read)
	return read, nil
}

// nextCandidate chooses the function to read next and the message for that step. In the frontier it
// prefers a function of the goal, then one in the same file as the goal, then the first that is not
// an error class. If the frontier has none of these or only one read remains, it chooses a function
// of the goal, which the search for definitions has shown. next is nil if there is nothing to read.
func nextCandidate(frontier []candidate, goal, read []definition) (next *definition, m message) {
	frontier = slices.DeleteFunc(slices.Clone(frontier), func(c candidate) bool { return slices.Contains(read, c.definition) })
	find := func(match func(definition) bool) *candidate {
		for i := range frontier {
			if match(frontier[i].definition) {
				return &frontier[i]
			}
		}
		return nil
	}
	found := find(func(d definition) bool { return slices.Contains(goal, d) })
	if found == nil && len(read) < maxReads-1 {
		found = find(func(d definition) bool {
			return !d.isClass && slices.ContainsFunc(goal, func(g definition) bool { return g.path == d.path })
		})
		if found == nil {
			found = find(func(d definition) bool { return !strings.HasSuffix(d.name, "Error") })
		}
	}
	if found != nil {
		return &found.definition, sayFollow(*found)
	}
	for _, g := range goal {
		if !slices.Contains(read, g) {
			return &g, sayUnread(g)
		}
	}
	return nil, message{}
}

// stopInside sets breakpoints until the program stops in one of the functions. It reports whether
// the program stopped there in a call by the failing test. It runs only that test, because other
// tests call the functions with other values.
func (s *script) stopInside(route []definition, failing failure) (bool, error) {
	tried, entry := 0, testcmd.One(s.evidence.command, failing.id, true)
	for _, d := range route {
		for _, line := range s.evidence.breakpointLines(d) {
			if tried == maxBreakpoints || entry == "" {
				return false, nil
			}
			tried++
			if err := s.runTo(sayBreak(d, line), d, line, entry); err != nil {
				return false, err
			}
			if strings.Contains(s.last.Observation.Text, testcmd.NoSelect) {
				if entry = testcmd.One(s.evidence.command, failing.id, false); entry == "" {
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
			if f := s.evidence.frame; f != nil && f.Event != "finished" && f.File == d.path && f.Line == line {
				if err := s.act(sayStack(d, line), "pdb", map[string]any{"command": "w"}); err != nil {
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
func (s *script) runTo(m message, d definition, line int, entry string) error {
	where := fmt.Sprintf("%s:%d", d.path, line)
	err := s.act(m, "pdb", map[string]any{"command": "b " + where, "entrypoint": entry})
	if err != nil || s.failed() {
		return err
	}
	return s.act(sayContinue(d, line), "pdb", map[string]any{"command": "c"})
}

// inspect prints arguments at the current line, then local variables. If a line of the fix lies
// ahead in the same function, inspect runs to it before it prints the local variables.
func (s *script) inspect() error {
	frame := *s.evidence.frame
	done := map[string]bool{} // by command
	succeeded, prefix := 0, message{}
	inspectWith := func(command string, m message) error {
		if done[command] || succeeded == maxInspections {
			return nil
		}
		done[command] = true
		if err := s.act(prefix.then(m), "pdb", map[string]any{"command": command}); err != nil {
			return err
		}
		prefix = message{}
		if !s.failed() {
			succeeded++
		}
		return nil
	}
	if err := inspectWith("a", sayArguments(s.failing, frame.Function)); err != nil {
		return err
	}
	if line := s.lineAhead(frame.File, frame.Line); line > 0 {
		if err := s.act(sayUntil(line), "pdb", map[string]any{"command": fmt.Sprintf("until %d", line)}); err != nil {
			return err
		}
		f := s.evidence.frame
		if s.last.Observation.TimedOut || f == nil || f.Event == "finished" || f.Function != frame.Function || f.Depth != frame.Depth {
			return errNoEvidence
		}
		if f.Line != line {
			prefix = sayElsewhere(line, *f)
		}
	}
	if f := s.evidence.frame; f != nil && f.Event != "finished" {
		for _, name := range s.evidence.locals(f.File, f.Line) {
			if err := inspectWith("p "+name, sayPrint(name, s.evidence.lineText(f.File, f.Line), f.File, f.Line)); err != nil {
				return err
			}
		}
	}
	if s.evidence.isMethod(frame.File, frame.Line) {
		if err := inspectWith("p vars(self)", sayObject()); err != nil {
			return err
		}
	}
	if succeeded < minInspections {
		return inspectWith("pp locals()", sayLocals())
	}
	return nil
}

// lineAhead returns an executable line of the fix that a step has shown and that lies ahead in the
// current function. It returns 0 if no line qualifies.
func (s *script) lineAhead(file string, from int) int {
	here := s.evidence.functionAt(file, from)
	for _, t := range s.target {
		for _, line := range t.lines {
			if t.path == file && line > from && s.evidence.lineText(file, line) != "" && s.evidence.isExecutable(file, line) &&
				here != nil && s.evidence.functionAt(file, line) != nil && *s.evidence.functionAt(file, line) == *here {
				return line
			}
		}
	}
	return 0
}

// repair applies the gold edits, runs the tests and submits, even if the tests still fail. function is the one in
// which the program stopped.
func (s *script) repair(edits []schemas.ToolCall, function string) error {
	for i, call := range edits {
		call.GoldEdit = true
		if err := s.do(sayEdit(s.failing, function, i), call); err != nil {
			return err
		}
	}
	if err := s.act(sayEvaluate(), "eval", map[string]any{}); err != nil {
		return err
	}
	m := sayStillFailing()
	if state := s.last.State; state != nil && state.EvalPassed != nil && *state.EvalPassed {
		m = sayDone(s.failing, schemas.Value(state.TestsFailed) == 0)
	}
	return s.act(m, "submit", map[string]any{})
}
