package write

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// Options returns what the agent could do next. There is at least one option.
func (n *Notes) Options() []Option {
	var out []Option
	switch {
	case !n.ran:
		out = append(out, Option{Kind: RunTests, say: n.sayRun(), call: call("eval", map[string]any{})})
	case n.Edits > 0 && !n.Verified:
		out = append(out, Option{Kind: RunTests, say: n.sayVerify(), call: call("eval", map[string]any{})})
	case n.Edits > 0:
		out = append(out, Option{Kind: Submit, say: n.sayDone(), call: call("submit", map[string]any{})})
	case n.Test == nil:
		out = n.testOptions()
	default:
		out = slices.Concat(n.stopOptions(), n.endOptions(), n.startOptions(), n.readOptions())
	}
	out = slices.DeleteFunc(out, func(o Option) bool {
		return o.call.Name != "" && o.call.Name != "pdb" && n.done[callKey(o.call)] && o.Kind != RunTests
	})
	return append(out, Option{Kind: GiveUp, say: say("I cannot name the cause from what I have seen, so I stop here."), stop: schemas.ExitGaveUp})
}

func (n *Notes) sayRun() message {
	return say(n.words("First I reproduce the failure: I run the tests and read how they fail.",
		"Before I read any code, I run the tests to see which ones fail and how.",
		"I start with the failure itself, so I run the tests."))
}

func (n *Notes) sayVerify() message {
	return say(n.words("I run all tests to check the change.", "Now I check with all tests that the change works and that nothing else broke.",
		"The tests decide whether that was the cause, so I run all of them."))
}

func (n *Notes) sayDone() message {
	if !n.Passed {
		return say("Some tests still fail.", schemas.Claim{Kind: schemas.ClaimFails}).then(say("I submit the change as it is."))
	}
	m := say(fmt.Sprintf("`%s` passes now.", n.Test.ID), schemas.Claim{Kind: schemas.ClaimPasses, Test: n.Test.ID})
	if len(n.Failures) == 0 {
		m = say(n.words("All tests pass now.", "No test fails any more."), schemas.Claim{Kind: schemas.ClaimFails, Count: new(0)})
	}
	return m.then(say(n.words("I submit the fix.", "I submit the change.")))
}

// maxTests is the number of failing tests that the agent considers to follow.
const maxTests = 8

// before and after are the numbers of lines that the agent reads around the line at which a test fails.
const before, after = 25, 8

// testOptions returns the failing tests that the agent can read.
func (n *Notes) testOptions() []Option {
	var out []Option
	for _, f := range n.Failures[:min(len(n.Failures), maxTests)] {
		if f.At.File == "" {
			continue
		}
		args := map[string]any{"path": f.At.File}
		if f.At.Line > 0 {
			args["start"], args["end"] = max(1, f.At.Line-before), f.At.Line+after
		}
		m := n.failing(f).then(say(n.words("I read the test to see what it does and what it expects.", "I look at the test first.", "What does the test do before that? I read it.")))
		out = append(out, Option{Kind: ReadTest, Test: f.ID, Place: f.At, say: m, call: call("view", args)})
	}
	return out
}

// testLines returns the shown lines of the failing test, from its definition to the line at which it fails.
func (n *Notes) testLines() []int {
	at := n.Test.At
	first := max(1, at.Line-before)
	for _, f := range n.functions() {
		if f.File == at.File && f.Name == testcmd.Function(n.Test.ID) && (at.Line == 0 || f.Line <= at.Line) {
			first = f.Line
			if at.Line == 0 {
				return n.body(f)
			}
		}
	}
	var out []int
	for line := first; line <= at.Line; line++ {
		if n.text(Place{at.File, line}) != "" {
			out = append(out, line)
		}
	}
	return out
}

// reference is a name of the program that a shown text calls.
type reference struct {
	name   string
	caller string // the function or the id of the test
}

// references returns the names that the test and the functions that were read call, the latest function first.
func (n *Notes) references() []reference {
	var out []reference
	add := func(caller, text string) {
		for _, name := range called(text) {
			if !slices.ContainsFunc(out, func(r reference) bool { return r.name == name }) {
				out = append(out, reference{name, caller})
			}
		}
	}
	for _, f := range n.functions() {
		if !testcmd.IsTestFile(f.File) && n.isRead(f) && !f.IsClass {
			add(f.Name, n.join(f.File, n.body(f)[1:]))
		}
	}
	add(n.Test.ID, n.join(n.Test.At.File, n.testLines()))
	return out
}

func (n *Notes) join(file string, lines []int) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(n.lines[file][line])
		b.WriteByte('\n')
	}
	return b.String()
}

// readOptions returns what the agent can search for and read: functions that shown texts call, and places in the
// traceback.
func (n *Notes) readOptions() []Option {
	var out []Option
	shown := n.functions()
	for _, r := range n.references() {
		var found []Function
		for _, f := range shown {
			if f.Name == r.name && !testcmd.IsTestFile(f.File) {
				found = append(found, f)
			}
		}
		for _, f := range found {
			if !n.isRead(f) {
				out = append(out, n.readOption(f, r, len(found) > 1))
			}
		}
		if len(found) == 0 && !commonNames[r.name] {
			pattern := fmt.Sprintf(`(def|class) %s\b`, regexp.QuoteMeta(r.name))
			out = append(out, Option{Kind: Find, Function: Function{Name: r.name}, say: n.sayFind(r),
				call: call("grep", map[string]any{"pattern": pattern, "include": "*.py"})})
		}
	}
	for _, at := range n.Test.frames {
		if !testcmd.IsTestFile(at.File) && n.text(at) == "" {
			m := say(n.words("The traceback ends in the program itself.", "The error comes from the program's own code.")).then(
				say(fmt.Sprintf(n.words("I read %s around line %d.", "I look at %s around line %d."), at.File, at.Line)))
			out = append(out, Option{Kind: ReadBody, Place: at, say: m,
				call: call("view", map[string]any{"path": at.File, "start": max(1, at.Line-before), "end": at.Line + after})})
		}
	}
	out = append(out, n.outlineOptions()...)
	for _, f := range shown {
		if !testcmd.IsTestFile(f.File) && !f.IsClass && n.isRead(f) {
			if o, ok := n.readOnOption(f); ok {
				out = append(out, o)
			}
		}
	}
	for _, f := range shown { // methods of a class, and neighbors, that a search or a view has shown
		if !testcmd.IsTestFile(f.File) && !f.IsClass && !n.isRead(f) {
			out = append(out, n.readOption(f, reference{}, false))
		}
	}
	return out
}

// readOnOption returns the option to read the lines after the last one of a function that was shown in part.
func (n *Notes) readOnOption(f Function) (Option, bool) {
	body := n.body(f)
	last := body[len(body)-1]
	for n.lines[f.File][last+1] != "" || n.isBlank(Place{f.File, last + 1}) { // shown, but not part of the function
		last++
		if n.text(Place{f.File, last}) != "" {
			return Option{}, false
		}
	}
	if n.ends[f.File] == last {
		return Option{}, false
	}
	m := say(fmt.Sprintf(n.words("`%s` is longer than that. I read on.", "I read the rest of `%s`."), f.Name))
	return Option{Kind: ReadBody, Function: f, Place: Place{f.File, last + 1}, say: n.learned().then(m),
		call: call("view", map[string]any{"path": f.File, "start": last + 1, "end": last + 1 + maxBody})}, true
}

// isBlank reports whether a shown line is empty.
func (n *Notes) isBlank(p Place) bool {
	text, shown := n.lines[p.File][p.Line]
	return shown && strings.TrimSpace(text) == ""
}

// outlineOptions returns searches for all definitions: in a file of the program that was shown, or everywhere.
func (n *Notes) outlineOptions() []Option {
	const pattern = `^\s*(async def|def|class) `
	var out []Option
	for _, file := range slices.Sorted(maps.Keys(n.lines)) {
		if !testcmd.IsTestFile(file) && strings.HasSuffix(file, ".py") {
			m := say(fmt.Sprintf(n.words("What else is in %s? I list its definitions.", "I list the definitions in %s."), file))
			out = append(out, Option{Kind: Outline, Place: Place{File: file}, say: n.learned().then(m), call: call("grep", map[string]any{"pattern": pattern, "path": file})})
		}
	}
	m := say(n.words("I need a map of the program: which file defines what?", "To find my way, I list all definitions of the program."))
	return append(out, Option{Kind: Outline, say: n.learned().then(m), call: call("grep", map[string]any{"pattern": pattern, "include": "*.py", "max_results": 500})})
}

// commonNames holds names of functions and methods of Python itself, for which the agent does not search.
var commonNames = wordSet(`abs all any bool bytes bytearray callable chr classmethod dict dir enumerate filter float format frozenset getattr
	hasattr hash hex id input int isinstance issubclass iter len list map max min next object oct open ord pow print property range repr
	reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip append extend insert remove pop clear copy
	count index sort reverse keys values items get update setdefault popitem add discard union join split rsplit strip lstrip rstrip
	replace startswith endswith encode decode lower upper title capitalize find rfind isdigit isalpha isspace partition rpartition
	splitlines zfill read write close readline group groups match search fullmatch sub compile findall finditer
	ValueError TypeError KeyError IndexError AttributeError RuntimeError NotImplementedError Exception StopIteration OSError
	ZeroDivisionError LookupError OverflowError AssertionError UnicodeDecodeError
	assertEqual assertTrue assertFalse assertRaises assertIs assertIn assertIsNone assertIsNotNone assertNotEqual assertNotIn
	assertListEqual assertDictEqual assertIsInstance assertRaisesRegex raises`)

// maxBody is the number of lines that the agent reads of a function whose end is unknown.
const maxBody = 40

func (n *Notes) readOption(f Function, r reference, ambiguous bool) Option {
	args := map[string]any{"path": f.File, "start": f.Line, "end": f.Line + maxBody}
	m := say(fmt.Sprintf(n.words("I read `%s`.", "I look at `%s` next.", "Now I read `%s`."), f.Name))
	switch {
	case r.name == "":
		m = say(fmt.Sprintf("I also read `%s` in %s at line %d.", f.Name, f.File, f.Line), f.defines())
	case ambiguous:
		m = say(fmt.Sprintf("%s defines one `%s` at line %d.", f.File, f.Name, f.Line), f.defines()).then(m)
	case !strings.Contains(argument(n.last, "pattern"), f.Name):
		calls := schemas.Claim{Kind: schemas.ClaimCalls, Caller: r.caller, Function: f.Name}
		m = say(fmt.Sprintf(n.words("%s calls `%s`.", "%s uses `%s`."), n.caller(r), f.Name), calls).then(m)
	}
	return Option{Kind: ReadBody, Function: f, Place: f.Place, say: n.learned().then(m), call: call("view", args)}
}

// caller names the caller of a reference in a sentence.
func (n *Notes) caller(r reference) string {
	if r.caller == n.Test.ID {
		return "The test"
	}
	return "`" + r.caller + "`"
}

func (n *Notes) sayFind(r reference) message {
	calls := schemas.Claim{Kind: schemas.ClaimCalls, Caller: r.caller, Function: r.name}
	return say(fmt.Sprintf(n.words("%s calls `%s`.", "%s uses `%s`."), n.caller(r), r.name), calls).then(
		say(n.words("I search for its definition.", "Where is it defined?", "I look for it.")))
}
