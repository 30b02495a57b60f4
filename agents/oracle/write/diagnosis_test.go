package write

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// The cause is said with the values from which the wrong one follows, and with what the test expects.
func TestSayCause(t *testing.T) {
	n := &Notes{
		Test: &Failure{ID: "test_p.py::test_f", At: Place{"test_p.py", 2}, Message: "assert 'low' == 'high'"}, source: *program(1, "def f(a, b):\n    if a > b:\n        return 'high'\n    return 'low'"), paused: true,
		Stops: []Stop{{Place: Place{"p.py", 2}, Function: "f", Event: "line", Values: []Value{
			{Expression: "a", Text: "3"}, {Expression: "b", Text: "3"}, {Expression: "a > b", Text: "False"}, {Expression: "a >= b", Text: "True"}}}},
	}
	n.source.add("test_p.py", 1, "def test_f():")
	n.source.add("test_p.py", 2, `    assert f(3, 3) == "high"`)
	f, st, _ := n.statementAt(Place{"p.py", 2})
	var c change
	for _, v := range n.changes(f, st) {
		if v.expression == "a >= b" {
			c = v
		}
	}
	m := n.sayCause(f, st, c, Value{Expression: "a > b", Text: "False"}, Value{Expression: "a >= b", Text: "True"})
	for _, want := range []string{"line 2 of `f` is the cause: where `a` is `3` and `b` is `3`, `a > b` is `False`, so the program skips this branch, while `a >= b` is `True`.", "`'low'`", "`'high'`"} {
		if !strings.Contains(m.text, want) {
			t.Errorf("%q is missing in: %s", want, m.text)
		}
	}
	if m := n.sayConclusion(f, st, Value{Expression: "a > b", Text: "False"}); !strings.HasSuffix(m.text, "What I have tried in its place does not tell me the fix, so I leave that open.") {
		t.Error(m.text)
	}
	n.Stops[0].Values = n.Stops[0].Values[:3]
	if m := n.sayConclusion(f, st, Value{Expression: "a > b", Text: "False"}); !strings.HasSuffix(m.text, "I have not tested a fix, so I change nothing.") || strings.Count(m.text, "skips") != 1 {
		t.Error(m.text)
	}
	if m.sentences() > maxSentences {
		t.Errorf("%d sentences: %s", m.sentences(), m.text)
	}
	n.Test.Message = "AssertionError: False != True"
	if m := n.consequence(f, st, Value{Expression: "a > b", Text: "False"}, Value{Text: "True"}); strings.Contains(m.text, "compares") {
		t.Errorf("the test does not compare the values of a condition: %s", m.text)
	}
	n.Test.Message = "assert 'high' == 'high'"
	if got, want, ok := n.expected(); ok {
		t.Errorf("the test shows both values, but %s is taken as the expected one, not %s", want, got)
	}
}

// A line does not decide what the function returned in another call.
func TestReturnBelongsToTheCall(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(a):\n    if a:\n        return 1\n    b = a + 1\n    return b"), paused: true}
	f, st, _ := n.statementAt(Place{"p.py", 4})
	stop := func(line, run, depth int, returns string, byBreakpoint bool) Stop {
		return Stop{Place: Place{"p.py", line}, Function: "f", Event: "line", Run: run, Depth: depth, Returns: returns, byBreakpoint: byBreakpoint}
	}
	at, end := stop(4, 2, 3, "", true), stop(5, 2, 3, "'this'", false)
	for name, c := range map[string]struct {
		stops []Stop
		want  string
	}{
		"the same call":    {[]Stop{at, end}, "That is why `f` returns `'this'`."},
		"an earlier run":   {[]Stop{stop(3, 1, 3, "'other'", false), at}, ""},
		"an earlier call":  {[]Stop{stop(3, 2, 3, "'other'", false), at}, ""},
		"a later run":      {[]Stop{at, stop(3, 3, 3, "'other'", false)}, ""},
		"a later call":     {[]Stop{at, stop(2, 2, 3, "", true), stop(3, 2, 3, "'other'", false)}, ""},
		"its caller":       {[]Stop{at, stop(3, 2, 2, "'other'", false)}, ""},
		"a call it makes":  {[]Stop{at, stop(3, 2, 4, "'other'", false), end}, "That is why `f` returns `'this'`."},
		"after other runs": {[]Stop{stop(3, 1, 3, "'other'", false), at, end}, "That is why `f` returns `'this'`."},
	} {
		n.Stops = c.stops
		if m := n.effect(f, st, Value{Expression: "b", Text: "2"}, Value{}); m.text != c.want {
			t.Errorf("%s: %q, want %q", name, m.text, c.want)
		}
	}
}

// Of the calls that were read, a text names those that the debugger has shown.
func TestWayIsTheOneThatWasShown(t *testing.T) {
	const text = "def draw(x):\n    line(x)\n    header(x)\n\ndef line(x):\n    build(x)\n\ndef header(x):\n    build(x)\n\ndef build(x):\n    return x"
	n := &Notes{Test: &Failure{ID: "test_p.py::test_f", At: Place{"test_p.py", 2}}, source: *program(1, text), callers: map[string]string{}, done: map[string]bool{}}
	n.source.add("test_p.py", 1, "def test_f():")
	n.source.add("test_p.py", 2, "    draw(1)")
	f, _ := n.FunctionAt(Place{"p.py", 12})
	if m := n.way(f); m.text != "The test calls `draw`, which calls `line`, which calls `build`." {
		t.Errorf("%q", m.text)
	}
	frame := func(function string, line, depth int, event string) *schemas.Frame {
		return &schemas.Frame{File: "p.py", Line: line, Function: function, Event: event, Depth: depth}
	}
	for _, f := range []*schemas.Frame{frame("header", 9, 3, "line"), frame("build", 11, 4, "call")} {
		n.add(schemas.Step{ToolCall: &[]schemas.ToolCall{pdb("s")}[0], Observation: &schemas.Observation{}, State: &schemas.EnvState{Frame: f}})
	}
	if m := n.way(f); m.text != "The test calls `draw`, which calls `header`, which calls `build`." {
		t.Errorf("%q", m.text)
	}
}
