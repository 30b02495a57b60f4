package write

import (
	"fmt"

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
		out = append(out, Option{Kind: RunTests, say: n.sayRun(), call: schemas.NewToolCall("eval", map[string]any{})})
	case n.Edits > 0 && !n.Verified:
		out = append(out, Option{Kind: RunTests, say: n.sayVerify(), call: schemas.NewToolCall("eval", map[string]any{})})
	case n.Edits > 0:
		out = append(n.undoOptions(), Option{Kind: Submit, say: n.sayDone(), call: schemas.NewToolCall("submit", map[string]any{})})
	case n.Test == nil:
		out = n.testOptions(n.Failures)
	case !n.hasRead:
		out = n.testOptions([]Failure{*n.Test})
	case n.contrast != nil && !n.contrast.isDone():
		out = n.continueContrast()
	default:
		out = slices.Concat(n.startOfTest(), n.stuckOptions(), n.stopOptions(), n.exchangeOptions(), n.compareOptions(), n.endOptions(), n.startOptions(), n.readOptions())
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
		"The tests show whether this change is right, so I run all of them."))
}

func (n *Notes) sayDone() message {
	if !n.Passed {
		return say("Some tests still fail.", schemas.Claim{Kind: schemas.ClaimFails}).then(say("I submit the change as it is."))
	}
	m := say(fmt.Sprintf("`%s` passes now.", n.Test.ID), schemas.Claim{Kind: schemas.ClaimPasses, Test: n.Test.ID})
	if len(n.Failures) > 0 && strings.Contains(n.last.Observation.Text, "not required") {
		m = m.then(say("The tests that still fail are not required."))
	}
	if len(n.Failures) == 0 {
		m = say(n.words("All tests pass now.", "No test fails any more."), schemas.Claim{Kind: schemas.ClaimFails, Count: new(0)})
	}
	return m.then(say(n.words("I submit the fix.", "I submit the change.")))
}

// maxTests is the number of failing tests that the agent considers to follow.
const maxTests = 200

// LinesBefore and LinesAfter are the numbers of lines that the agent reads around the line at which a test fails.
const LinesBefore, LinesAfter = 25, 8

// testOptions returns the failing tests that the agent can run alone or read.
func (n *Notes) testOptions(failures []Failure) []Option {
	var out []Option
	for _, f := range failures[:min(len(failures), maxTests)] {
		if f.At.File == "" {
			continue
		}
		args := map[string]any{"path": f.At.File}
		if f.At.Line > 0 {
			args["start"], args["end"] = max(1, f.At.Line-LinesBefore), f.At.Line+LinesAfter
		}
		out = append(out, n.runAlone(f)...)
		m := n.failing(f).then(say(n.words("I read the test to see what it does and what it expects.", "I look at the test first.")))
		out = append(out, Option{Kind: ReadTest, Test: f.ID, Place: f.At, say: m, call: schemas.NewToolCall("view", args)})
	}
	return out
}

// maxTestLines is the number of lines before the failing one in which the agent looks for the beginning of the test.
const maxTestLines = 160

// startOfTest returns the option to read the lines before the shown part of the test.
func (n *Notes) startOfTest() []Option {
	at, first := n.Test.At, n.Test.At.Line
	for first > 1 && n.IsShown(Place{at.File, first - 1}) {
		first--
	}
	if _, ok := n.testFunction(); ok || first <= 1 || at.Line-first > maxTestLines {
		return nil
	}
	m := say(n.words("I read what comes before that line, too.", "I read the test from further up, with line numbers."))
	return []Option{{Kind: ReadStart, Place: at, say: m,
		call: schemas.NewToolCall("view", map[string]any{"path": at.File, "start": max(1, first-maxBody), "end": first})}}
}

// testFunction returns the function that contains the line at which the followed test fails, if its first line was shown: the one
// with the name of the test, or else, as tests may be generated, a method or a function of the module.
func (n *Notes) testFunction() (f Function, ok bool) {
	at := n.Test.At
	for _, g := range n.Functions() {
		switch {
		case g.File != at.File || at.Line > 0 && g.Line > at.Line:
		case g.Name == testcmd.Function(n.Test.ID):
			f, ok = g, true
		case f.Name != testcmd.Function(n.Test.ID) && !g.IsClass && (g.Class != "" || g.indent == 0) && slices.Contains(n.body(g), at.Line):
			f, ok = g, true
		}
	}
	return f, ok
}

// testLines returns the shown lines of the failing test, from its definition to the statement that fails.
func (n *Notes) testLines() []int {
	at := n.Test.At
	first := max(1, at.Line-maxTestLines)
	if f, ok := n.testFunction(); ok {
		first = f.Line
		if at.Line == 0 {
			return n.body(f)
		}
	}
	var out []int
	for line := first; ; line++ {
		text, shown := n.lines[at.File][line]
		isBlock := shown && indentOf(text) > indentOf(n.lines[at.File][at.Line]) // of a statement such as with
		switch {
		case line > at.Line && !isBlock:
			return out
		case strings.TrimSpace(text) != "":
			out = append(out, line)
		}
	}
}
