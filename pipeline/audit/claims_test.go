package audit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// callRow returns a row with a call and its answer.
func callRow(step int, message, tool, arguments, answer string) schemas.StepRow {
	return schemas.StepRow{
		StepIndex: int32(step), Source: "agent", Message: message, ToolName: &tool, ArgumentsJSON: &arguments, Observation: &answer,
		ActionKind: "seek_dynamic", IsError: new(false),
	}
}

const failing = "The tests do not pass. 1 passed, 1 failed.\n  tests/test_m.py::test_b (failed)\n\n" +
	"___ test_b ___\n\n    def test_b():\n>       assert half(3) == 1.5\nE       assert 1 == 1.5\n\ntests/test_m.py:5: AssertionError\n1 failed, 1 passed"

// episode returns an episode in which the debugger stops in half.
func episode() []schemas.StepRow {
	stop := callRow(2, "", "pdb", `{"command":"c ;; p n, n // 2"}`, "> m.py(2)half()\n-> return n // 2\n(3, 1)\nCurrent frame: m.py:2 in half\n  1    \tdef half(n):\n  2  ->\t    return n // 2")
	stop.FrameFile, stop.FrameLine, stop.FrameFunction, stop.DebuggerEvent = new("m.py"), new(int32(2)), new("half"), new("line")
	stop.BreakpointsJSON = new(`[{"enabled":true,"file":"m.py","line":2}]`)
	return []schemas.StepRow{
		callRow(0, "", "eval", "{}", failing),
		callRow(1, "", "view", `{"path":"m.py"}`, "m.py, lines 1-5 of 5\n    1  def half(n):\n    2      return n // 2\n    3  \n    4  def all(xs):\n    5      return [half(x) for x in xs]"),
		stop,
	}
}

func TestCheck(t *testing.T) {
	rows := episode()
	rows[1].Targets = []string{"m.py:1-5"}
	r := recordOf(rows, "")
	type claim = schemas.Claim
	for _, c := range []struct {
		claim claim
		want  string
	}{
		{claim{Kind: "fails", Test: "tests/test_m.py::test_b"}, "true"},
		{claim{Kind: "passes", Test: "tests/test_m.py::test_b"}, "false"},
		{claim{Kind: "fails", Test: "tests/test_m.py::test_a"}, "false"},
		{claim{Kind: "fails"}, "true"},
		{claim{Kind: "fails", Count: new(0)}, "false"},
		{claim{Kind: "passes", Count: new(1)}, "true"},
		{claim{Kind: "reports", Test: "test_b", Message: "assert 1 == 1.5"}, "true"},
		{claim{Kind: "reports", Test: "test_b", Message: "assert 2 == 1.5"}, "false"},
		{claim{Kind: "reports", Message: "lines 1-5 of 5"}, "true"},
		{claim{Kind: "source", File: "m.py", Line: 2, Text: "return n // 2"}, "true"},
		{claim{Kind: "source", File: "m.py", Line: 2, Text: "return n / 2"}, "false"},
		{claim{Kind: "source", File: "m.py", Line: 7, Text: "return n / 2"}, "unchecked"},
		{claim{Kind: "defines", Function: "all", File: "m.py", Line: 4}, "true"},
		{claim{Kind: "defines", Function: "all", File: "m.py", Line: 1}, "false"},
		{claim{Kind: "calls", Caller: "all", Function: "half"}, "true"},
		{claim{Kind: "calls", Caller: "half", Function: "all"}, "false"},
		{claim{Kind: "calls", Caller: "all", Function: "sum"}, "unchecked"}, // the file may go on
		{claim{Kind: "stops", File: "m.py", Line: 2, Function: "half"}, "true"},
		{claim{Kind: "stops", Function: "all"}, "false"},
		{claim{Kind: "breakpoint", File: "m.py", Line: 2}, "true"},
		{claim{Kind: "breakpoint", File: "m.py", Line: 5}, "false"},
		{claim{Kind: "reaches", Caller: "test_b", Function: "half"}, "unchecked"}, // no stack was shown
		{claim{Kind: "not_reached", Function: "half"}, "false"},
		{claim{Kind: "not_reached", Function: "all"}, "true"},
		{claim{Kind: "value", Expression: "n", Value: "3"}, "true"},
		{claim{Kind: "value", Expression: "n", Value: "4"}, "false"},
		{claim{Kind: "value", Expression: "n", Value: "'three'"}, "unchecked"},
		{claim{Kind: "value", Expression: "x", Value: "3"}, "unchecked"},
		{claim{Kind: "value", Expression: "(n, n // 2)", Value: "(3, 1)"}, "true"},
		{claim{Kind: "equal", Expression: "n", Other: "n // 2"}, "false"},
		{claim{Kind: "differs", Expression: "n", Other: "n // 2"}, "true"},
		{claim{Kind: "contradicts", Expression: "n // 2", Value: "1", Other: "1.5"}, "true"},
		{claim{Kind: "contradicts", Expression: "n // 2", Value: "2", Other: "1.5"}, "false"},
		{claim{Kind: "executed", File: "m.py", Line: 2}, "unchecked"}, // the line is about to run
		{claim{Kind: "cause", Function: "half"}, "unchecked"},
		{claim{Kind: "does_not_explain", Test: "test_b"}, "unchecked"},
		{claim{Kind: "cause", Function: "all", File: "m.py", Line: 2}, "unchecked"}, // the file may go on
		{claim{Kind: "cause", Function: "half", File: "m.py", Line: 5}, "false"},
		{claim{Kind: "cause", Function: "half", File: "m.py", Line: 2, Reason: "n // 2 is 1"}, "unchecked"},
		{claim{Kind: "cause", Function: "half", File: "m.py", Line: 2, Reason: "n // 2 is 2"}, "false"},
	} {
		if got := Check(c.claim, r); got.Verdict != c.want {
			t.Errorf("%+v: %s, want %s (%s)", c.claim, got.Verdict, c.want, got.Why)
		}
	}
}

// A cause is unchecked because of what only a reader can decide, if the debugger showed its reason at its line.
func TestCauseThatWasShown(t *testing.T) {
	view := callRow(0, "", "view", `{"path":"m.py"}`, "m.py, lines 1-6 of 6\n    1  def total(xs):\n    2      n = 0\n    3      n += sum(\n    4          xs)\n    5      return n\n    6  ")
	view.Targets = []string{"m.py:1-6"}
	rows := []schemas.StepRow{view}
	for i, s := range []struct {
		command, answer, event string
		line                   int32
	}{
		{"c ;; p n, sum(xs)", "> m.py(3)total()\n-> n += sum(\n(0, 7)", "line", 3}, {"n", "> m.py(4)total()\n-> xs)", "line", 4},
		{"n ;; p n", "> m.py(5)total()\n-> return n\n7", "line", 5}, {"r", "--Return--\n> m.py(5)total()->7\n-> return n", "return", 5},
	} {
		row := callRow(i+1, "", "pdb", `{"command":"`+s.command+`"}`, s.answer+fmt.Sprintf("\nCurrent frame: m.py:%d in total", s.line))
		row.FrameFile, row.FrameLine, row.FrameFunction, row.DebuggerEvent = new("m.py"), &s.line, new("total"), &s.event
		rows = append(rows, row)
	}
	r := recordOf(rows, "")
	for _, c := range []struct {
		line   int
		reason string
		want   bool
	}{
		{3, "", true}, {4, "", true}, {2, "", false}, {3, "sum(xs) is 7", true}, {4, "sum(xs) is 7", true}, {3, "sum(xs) is 6", false},
		{3, "n, sum(xs) is (0, 7)", true}, {3, "n, sum(xs) is (0, 6)", false}, {3, "n is 7", true}, {3, "n is 8", false}, {3, "xs is [7]", false},
		{5, "n is 7", true}, {5, "n + 0 is 7", true}, {5, "sum(xs) is 6", false},
	} {
		got := Check(schemas.Claim{Kind: "cause", Function: "total", File: "m.py", Line: c.line, Reason: c.reason}, r)
		if (got.Why == CauseShown) != c.want || got.Verdict == "true" {
			t.Errorf("line %d, %q: %s, %s", c.line, c.reason, got.Verdict, got.Why)
		}
	}
}

// A value shows that a line ran if only this line can have assigned it.
func TestAssignedValueShowsThatItsLineRan(t *testing.T) {
	for name, c := range map[string]struct{ head, other, want string }{
		"another value":  {"def f(xs):", "n = 0", "true"},
		"with a comment": {"def f(xs):  # a list", "n = 0  # none", "true"},
		"the same value": {"def f(xs):", "n = 3", "unchecked"},
		"an expression":  {"def f(xs):", "n = 2 * len(xs)", "unchecked"},
		"a negated name": {"def f(xs):", "n = -xs[0]", "unchecked"},
		"a parameter":    {"def f(xs, n):", "n = 0", "unchecked"},
		"no other line":  {"def f(xs):", "pass", "unchecked"},
	} {
		view := callRow(0, "", "view", `{"path":"m.py"}`, "m.py, lines 1-6 of 6\n    1  "+c.head+"\n    2      if not xs:\n    3          "+c.other+"\n    4      else:\n    5          n = len(xs)\n    6      return n")
		view.Targets = []string{"m.py:1-6"}
		stop := callRow(1, "", "pdb", `{"command":"c ;; p n"}`, "> m.py(6)f()\n-> return n\n3\nCurrent frame: m.py:6 in f")
		stop.FrameFile, stop.FrameLine, stop.FrameFunction, stop.DebuggerEvent = new("m.py"), new(int32(6)), new("f"), new("line")
		r := recordOf([]schemas.StepRow{view, stop}, "")
		if got := Check(schemas.Claim{Kind: "executed", File: "m.py", Line: 5}, r); got.Verdict != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, got.Verdict, c.want, got.Why)
		}
	}
}

// Extract leaves out questions, guesses and wishes.
func TestExtractLeavesOutGuesses(t *testing.T) {
	r := recordOf(episode(), "")
	for _, text := range []string{
		"Is n 4?", "If n is 4, the rest is clear.", "The test expects that n is 4.", "n should be 4.", "n is not 4.", "I want to see whether n is 4.",
		"n is 4 times as long.", "Perhaps n is 4.", "I run all tests.", "All tests should pass now.", "I stopped at nothing.", "",
	} {
		if got := Extract(text, r); len(got) > 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
	want := []schemas.Claim{{Kind: "value", Expression: "n", Value: "4"}}
	for _, text := range []string{"n is 4.", "So n is still 4, as before.", "n = 4", "Here n equals 4 (see above).", "`n` is `4`."} {
		if got := Extract(text, r); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// encode leaves out no field.
func TestEncodeWritesAllFields(t *testing.T) {
	c := schemas.CheckedClaim{
		Claim: schemas.Claim{Kind: "a", Test: "b", Message: "c", File: "d", Line: 1, Text: "e", Function: "f", Caller: "g", Hit: 2, Expression: "h", Value: "i", Other: "j", Count: new(0), Reason: "k"},
		Why:   "l", Verdict: "m", Extracted: true,
	}
	v := reflect.ValueOf(c.Claim)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the test does not set %s", v.Type().Field(i).Name)
		}
	}
	text, err := encode([]schemas.CheckedClaim{c})
	if err != nil {
		t.Fatal(err)
	}
	var back []schemas.CheckedClaim
	if err := json.Unmarshal(text, &back); err != nil || len(back) != 1 || !reflect.DeepEqual(back[0], c) {
		t.Errorf("%s: %+v, %v", text, back, err)
	}
}

// BenchmarkMetricsAndAudit measures all columns on an episode of 14 steps, per second of CPU time because other processes may be running.
func BenchmarkMetricsAndAudit(b *testing.B) {
	var rows []schemas.StepRow
	for range 4 {
		rows = append(rows, episode()...)
	}
	var file strings.Builder
	for n := 1; n <= 100; n++ {
		fmt.Fprintf(&file, " %4d      x = self.items[0].price * self.items[0].count\n", n)
	}
	long := callRow(0, "`half` returns the rounded quotient, so I read the rest of the file.", "view", `{"path":"shop.py"}`, "shop.py, lines 1-100 of 100\n"+file.String())
	long.Targets = []string{"shop.py:1-100"}
	rows = append(rows, long, callRow(0, "n is 3 here, and the test fails.", "eval", "{}", failing))
	for i := range rows {
		rows[i].ObservationSHA256 = new("x")
		if rows[i].StepIndex = int32(i); rows[i].Message == "" {
			rows[i].Message = "`test_b` fails with `assert 1 == 1.5`. The division rounds, so n // 2 is 1."
		}
	}
	names := map[string]bool{"half": true, "all": true, "price": true}
	steps, start := 0, cpuTime()
	for b.Loop() {
		for i := range rows {
			rows[i].ClaimsJSON = nil
		}
		var e schemas.EpisodeRow
		read := metrics.Read(rows, "")
		metrics.MarkNewInformation(read)
		metrics.Seek(read, metrics.Evidence{})
		record, err := Claims(&e, read)
		if err != nil {
			b.Fatal(err)
		}
		Padding(&e, rows, record)
		if err := closure.FillGrounding(&e, read, nil, names, false); err != nil {
			b.Fatal(err)
		}
		steps += len(rows)
	}
	b.ReportMetric(float64(steps)/(cpuTime()-start).Seconds(), "steps/cpu-s")
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
