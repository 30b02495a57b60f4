package write

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// Notes is what the steps of an episode have shown, and what the agent has done.
type Notes struct {
	Failures []Failure // of the last run of all tests
	Test     *Failure  // the failing test that the agent follows, from its first look at it on
	Stops    []Stop    // places at which the debugger has stopped the program
	Edits    int
	// Explained says that the agent has named the cause before a change that it did not derive, and GoldEdits is the number
	// of edits since then.
	Explained bool
	GoldEdits int
	Undone    bool // the agent has taken an edit back
	Verified  bool // all tests were run after the last edit
	Passed    bool // by the last run of all tests
	Calls     int
	Breaks    int   // breakpoints that the agent has set
	Timeouts  int   // commands of the debugger that did not end in time
	Missed    int   // runs in which the program has stopped at no breakpoint
	Seed      int64 // chooses among ways to say the same

	source
	tools      []string
	command    string // runs the tests, if the prompt contains it
	workdir    string
	ran        bool            // all tests have run
	failed     int             // number of tests that failed before the first edit
	reported   int             // number of tests that failed in the last run, of which Failures has the first ones; 0 = unknown
	hasRead    bool            // the agent has read the followed test
	done       map[string]bool // calls that were made, see callKey
	ends       map[string]int  // the last line of files, as far as it is known
	listed     map[string]bool // files all of whose definitions were listed
	entry      string          // command line that the debugger runs
	run        int             // of the debugger, from 1
	paused     bool            // at the last of Stops
	points     []schemas.Breakpoint
	last       schemas.Step      // the last call
	noSelect   bool              // unittest has no option -k
	askedStack bool              // the agent has looked at the stack
	callers    map[string]string // the function that has called a function, as the debugger has shown it
	isStuck    bool              // the last command that ran the program did not end in time
	hasMissed  bool              // with the last command of the debugger, the program has ended without a stop
	contrast   *contrast         // with a test that does not fail, once the agent has begun it
	mentions   map[string]string // see findMentions
	classes    map[string]bool
	changed    map[Place][]change // what changes has found
	viewed     []viewed
	undo       *undo // of the last edit, if it has changed one line
	// temporary is the place of the last temporary breakpoint.
	temporary Place
}

var viewHead = regexp.MustCompile(`^(\S+), lines \d+-\d+ of (\d+)`)

// Read takes notes of the steps of an episode.
func Read(t *agents.Transcript) *Notes {
	n := &Notes{source: source{lines: map[string]map[int]string{}}, workdir: cmp.Or(t.Task.Workdir, schemas.DefaultWorkdir), done: map[string]bool{}, callers: map[string]string{}, ends: map[string]int{}, listed: map[string]bool{}}
	for _, tool := range t.Tools {
		n.tools = append(n.tools, tool.Name)
	}
	for _, s := range t.Steps {
		if s.ToolCall == nil {
			if t.Task.Entrypoint != "" && strings.Contains(s.Text, t.Task.Entrypoint) {
				n.command = t.Task.Entrypoint
			}
			continue
		}
		n.add(s)
	}
	return n
}

// add takes notes of a call.
func (n *Notes) add(s schemas.Step) {
	n.Calls++
	n.last, n.changed = s, nil
	n.done[callKey(*s.ToolCall)] = true
	if s.Observation == nil {
		return
	}
	before := maps.Clone(n.lines[argument(s, "path")])
	if answer, ok := shown.AnswerOf(s); ok {
		lines, _ := shown.Lines(answer, false)
		for _, l := range lines {
			n.source.add(l.File, l.Number, l.Text)
		}
		if s.ToolCall.Name == "view" && len(lines) > 0 {
			n.viewed = append(n.viewed, viewed{lines[0].File, lines[0].Number, lines[len(lines)-1].Number, s.Index})
		}
	}
	if s.ToolCall.GoldEdit {
		n.GoldEdits++
		n.Edits++
		n.Verified, n.paused = false, false
		return
	}
	switch s.ToolCall.Name {
	case "eval":
		n.readTests(s)
	case "bash":
		n.follow(s)
		n.readAlone(s)
	case "grep":
		if argument(s, "pattern") == outline && argument(s, "path") != "" && !strings.Contains(s.Observation.Text, "The first ") {
			n.listed[argument(s, "path")] = true
		}
	case "view":
		if m := viewHead.FindStringSubmatch(s.Observation.Text); m != nil {
			n.ends[m[1]], _ = strconv.Atoi(m[2]) // the pattern ensures digits
		}
		n.follow(s)
		n.hasRead = n.hasRead || n.Test != nil
		n.Explained = n.Explained || s.Reply != nil && slices.ContainsFunc(s.Reply.Claims, func(c schemas.Claim) bool { return c.Kind == schemas.ClaimCause })
	case "pdb":
		n.debug(s)
	case "edit":
		if !s.Observation.IsError {
			n.edit(s, before)
		}
	}
}

// countFailed returns how many tests failed in the last run.
func (n *Notes) countFailed() int { return max(n.reported, len(n.Failures)) }

func (n *Notes) readTests(s schemas.Step) {
	n.ran = true
	n.Failures, n.reported = readFailures(s.Observation.Text, n.workdir), 0
	if m := failedCount.FindStringSubmatch(s.Observation.Text); m != nil {
		n.reported, _ = strconv.Atoi(m[1])
	}
	if n.Edits == 0 {
		n.failed = n.countFailed()
	}
	n.Passed = s.State != nil && s.State.EvalPassed != nil && *s.State.EvalPassed
	n.Verified = n.Edits > 0
}

// follow notes which failing test the agent follows: the one that it names when it first views a test.
func (n *Notes) follow(s schemas.Step) {
	if s.Reply == nil || n.Test != nil {
		return
	}
	for _, c := range s.Reply.Claims {
		for i := range n.Failures {
			if f := n.Failures[i]; c.Kind == schemas.ClaimFails && c.Test == f.ID {
				n.Test = &f
			}
		}
	}
}

// debug takes notes of a call of the debugger.
func (n *Notes) debug(s schemas.Step) {
	text, _, _ := strings.Cut(s.Observation.Text, "\nCurrent frame:")
	if entry := argument(s, "entrypoint"); entry != "" {
		n.entry = entry
	}
	command := strings.TrimSpace(argument(s, "command"))
	if strings.Contains(text, "The program is paused before its first line") {
		n.run++
		n.paused = false
	}
	if place, ok := strings.CutPrefix(command, "tbreak "); ok {
		file, line, _ := strings.Cut(place, ":")
		n.temporary.File = file
		n.temporary.Line, _ = strconv.Atoi(line) // the agent wrote it
	}
	if strings.HasPrefix(command, "b ") || strings.HasPrefix(command, "tbreak ") {
		n.Breaks++
	}
	n.isStuck, n.hasMissed = n.isStuck && command == "w", false
	n.noSelect = n.noSelect || strings.Contains(text, testcmd.NoSelect)
	var frame *schemas.Frame
	if s.State != nil {
		frame, n.points = s.State.Frame, s.State.Breakpoints
	}
	if n.isContrast() {
		n.debugContrast(s, command, text)
		return
	}
	word, rest, _ := strings.Cut(command, " ")
	switch {
	case frame == nil || s.Observation.TimedOut:
		n.paused = false
		if s.Observation.TimedOut {
			n.Timeouts++
			n.isStuck = true
		} else if word == "c" && !slices.ContainsFunc(n.Stops, func(s Stop) bool { return s.Run == n.run }) {
			n.Missed++
			n.hasMissed = true
		}
	case slices.Contains([]string{"c", "n", "s", "r", "until", "u", "d"}, word) && !s.Observation.IsError:
		n.paused = true
		result := returned(text)
		if last := len(n.Stops) - 1; result == "None" && last >= 0 && n.Stops[last].Event == "exception" && n.Stops[last].Function == frame.Function && n.Stops[last].Depth == frame.Depth {
			result = "" // pdb shows None if an error ends the function
		}
		if last := len(n.Stops) - 1; frame.Event == "call" && last >= 0 && n.Stops[last].Run == n.run && n.Stops[last].Depth+1 == frame.Depth {
			n.callers[frame.Function] = n.Stops[last].Function
		}
		n.Stops = append(n.Stops, Stop{
			Place: Place{frame.File, frame.Line}, Function: frame.Function, Event: frame.Event, Depth: frame.Depth, Run: n.run, Entry: n.entry,
			Hit: n.hits(*frame), Condition: n.condition(*frame), Returns: result, Raises: raised(text, frame.Event), byBreakpoint: word == "c", breakpoint: breakpointNumber(text),
		})
	case word == "w":
		n.askedStack = true
		for _, call := range calls(text) {
			n.callers[call[1]] = call[0]
		}
	case n.paused && word == "p":
		stop := &n.Stops[len(n.Stops)-1]
		printed := values(rest, text, s.Observation.IsError)
		if !s.Observation.IsError {
			printed[0].step = s.Index
		}
		stop.Values = append(stop.Values, printed...)
	case n.paused && word == "a":
		stop := &n.Stops[len(n.Stops)-1]
		stop.asked = true
		if s.Observation.IsError { // an argument that is not yet initialized may have no text
			return
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = "); ok && !strings.Contains(name, " ") {
				stop.Values = append(stop.Values, Value{Expression: name, Text: value})
			}
		}
	}
}

// breakpointNumber returns the number of the breakpoint at which the program has stopped, or "".
func breakpointNumber(text string) string {
	_, rest, _ := strings.Cut(text, "Breakpoint ")
	number, _, ok := strings.Cut(rest, " hit")
	if !ok || len(number) > 3 {
		return ""
	}
	return number
}

// hits returns how often the breakpoint at a frame's place has been hit, or 0.
func (n *Notes) hits(f schemas.Frame) int {
	for _, p := range n.points {
		if p.File == f.File && p.Line == f.Line && p.Condition == "" {
			return p.Hits
		}
	}
	if n.temporary == (Place{f.File, f.Line}) {
		return 1
	}
	return 0
}

// condition returns the condition of the breakpoint at a frame's place, or "".
func (n *Notes) condition(f schemas.Frame) string {
	for _, p := range n.points {
		if p.File == f.File && p.Line == f.Line {
			return p.Condition
		}
	}
	return ""
}

// values returns what the command "p" has printed. A tuple of simple values is one value for each expression.
func values(expression, text string, isError bool) []Value {
	text = strings.TrimSpace(text)
	if isError {
		return []Value{{Expression: expression, Text: strings.TrimPrefix(text, "*** "), IsError: true}}
	}
	names, parts := splitTuple(expression), []string(nil)
	if inner, ok := strings.CutPrefix(text, "("); ok && strings.HasSuffix(inner, ")") && len(names) > 1 {
		parts = splitTuple(strings.TrimSuffix(inner, ")"))
	}
	if len(parts) != len(names) {
		return []Value{{Expression: expression, Text: text}}
	}
	out := []Value{{Expression: expression, Text: text}}
	if len(names) == 1 {
		return out
	}
	for i := range names {
		out = append(out, Value{Expression: names[i], Text: parts[i]})
	}
	return out
}

// splitTuple splits a text at the commas outside of brackets and strings.
func splitTuple(text string) []string {
	tokens, ok := tokenize(text)
	if !ok {
		return []string{text}
	}
	var out []string
	depth, from := 0, 0
	for _, t := range tokens {
		depth += t.nesting()
		if t.is(",") && depth == 0 {
			out = append(out, strings.TrimSpace(text[from:t.at]))
			from = t.end
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// returned returns the value that a stop at the end of a function shows, or "".
func returned(text string) string {
	_, after, ok := strings.Cut(text, "--Return--\n> ")
	if !ok {
		return ""
	}
	head, _, _ := strings.Cut(after, "\n-> ")
	_, value, _ := strings.Cut(head, ")->")
	return value
}

// raised returns the exception that a stop shows, or "".
func raised(text, event string) string {
	before, _, ok := strings.Cut(text, "\n> ")
	if event != "exception" || !ok {
		return ""
	}
	exception := before[strings.LastIndexByte(before, '\n')+1:]
	if strings.HasPrefix(exception, "GeneratorExit") || strings.HasPrefix(exception, "StopIteration") { // the end of an iteration
		return ""
	}
	return exception
}

// callKey identifies a call by its tool and its arguments.
func callKey(c schemas.ToolCall) string { return c.Name + " " + string(c.Arguments) }

func argument(s schemas.Step, name string) string {
	var args map[string]any
	if json.Unmarshal(s.ToolCall.Arguments, &args) != nil {
		return ""
	}
	text, _ := args[name].(string)
	return text
}
