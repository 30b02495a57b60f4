package audit

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// call is one call of a tool with its answer.
type call struct {
	tool      string
	arguments map[string]any
	answer    string
	points    []schemas.Breakpoint
}

// rowsOf returns the rows of calls. The first one has step_index 1.
func rowsOf(t *testing.T, calls ...call) []schemas.StepRow {
	t.Helper()
	var rows []schemas.StepRow
	for i, c := range calls {
		raw, err := json.Marshal(c.arguments)
		if err != nil {
			t.Fatal(err)
		}
		row := schemas.StepRow{StepIndex: int32(i + 1), Source: "agent", ToolName: &c.tool, ArgumentsJSON: new(string(raw)), Observation: &c.answer}
		row.ActionKind = metrics.Kind(&schemas.ToolCall{Name: c.tool, Arguments: raw})
		if c.tool == "pdb" {
			points, err := json.Marshal(c.points)
			if err != nil {
				t.Fatal(err)
			}
			row.BreakpointsJSON = new(string(points))
		}
		rows = append(rows, row)
	}
	return rows
}

func recordOf(rows []schemas.StepRow, workspace string) *Record {
	return Read(metrics.Read(rows, workspace))
}

const paused = `The program is paused before its first line: python3 -m pytest -q t.py::test_f
> /usr/lib/python3/dist-packages/pytest/__main__.py(1)<module>()
-> """The pytest entry point."""
`

func pdb(command, answer string, points ...schemas.Breakpoint) call {
	return call{"pdb", map[string]any{"command": command}, answer, points}
}

func TestRecordOfDebugger(t *testing.T) {
	at := schemas.Breakpoint{File: "courier/options.py", Line: 24, Enabled: true}
	hit := func(n int) schemas.Breakpoint { p := at; p.Hits = n; return p }
	rows := rowsOf(t,
		pdb("b courier/options.py:24", paused+"Breakpoint 1 set at courier/options.py:24\nCurrent frame: /usr/lib/python3/dist-packages/pytest/__main__.py:1 in <module>\n  1  ->\t\"\"\"x\"\"\"", at),
		pdb("c ;; p layer, result[name] ;; c ;; pp name\np len(name)", `Breakpoint 1 hit.
> courier/options.py(24)combine()
-> result[name] = layer.get(name) or result[name]
({'retries': 0, 'compress': False}, 5)
Breakpoint 1 hit.
> courier/options.py(24)combine()
-> result[name] = layer.get(name) or result[name]
'pause'
5
Current frame: courier/options.py:24 in combine
 24 B->	            result[name] = layer.get(name) or result[name]`, hit(2)),
		pdb("u ;; p self.x ;; w", `> courier/profiles.py(34)resolve()
-> return combine(*reversed(layers))
*** AttributeError: 'Profiles' object has no attribute 'x'
  t.py(5)test_f()
-> profiles.resolve("a")
> courier/profiles.py(34)resolve()
-> return combine(*reversed(layers))
  courier/options.py(24)combine()
-> result[name] = layer.get(name) or result[name]
Current frame: courier/profiles.py:34 in resolve`, hit(2)),
		pdb("r", `--Return--
> courier/options.py(25)combine()->{'retries': 5,
'pause': 1}
-> return result
Current frame: courier/options.py:25 in combine`, hit(40)),
		pdb("a ;; p locals()", `layers = ({'retries': 0},
 {})
{'layers': ({'retries': 0}, {}), 'name': 'pause'}
Current frame: courier/options.py:25 in combine`, hit(40)),
		pdb("restart ;; c", "The program was restarted.\n"+paused+`Breakpoint 1 hit.
> courier/options.py(24)combine()
-> result[name] = layer.get(name) or result[name]
Current frame: courier/options.py:24 in combine`, hit(41)),
	)
	r := recordOf(rows, "/testbed")
	type stop struct {
		step           int
		file           string
		line, hit, run int
	}
	var stops []stop
	for _, s := range r.Stops {
		stops = append(stops, stop{s.Step, s.File, s.Line, s.Hit, s.Run})
	}
	main, options := "/usr/lib/python3/dist-packages/pytest/__main__.py", "courier/options.py"
	if want := []stop{{1, main, 1, 0, 1}, {2, options, 24, 0, 1}, {2, options, 24, 2, 1}, {4, options, 25, 0, 1}, {6, main, 1, 0, 2}, {6, options, 24, 1, 2}}; !reflect.DeepEqual(stops, want) {
		t.Errorf("stops:\n%v, want\n%v", stops, want)
	}
	type value struct {
		stop             int
		expression, text string
		isDump           bool
	}
	var values []value
	for _, v := range r.Values {
		values = append(values, value{v.Stop, v.Expression, v.Text, v.IsDump})
	}
	if want := []value{
		{1, "layer", "{'retries': 0, 'compress': False}", false}, {1, "result[name]", "5", false},
		{2, "name", "'pause'", false}, {2, "len(name)", "5", false},
		{3, "return", "{'retries': 5,\n'pause': 1}", false}, {3, "layers", "({'retries': 0},\n {})", false}, {3, "layers", "({'retries': 0}, {})", true}, {3, "name", "'pause'", true},
	}; !reflect.DeepEqual(values, want) {
		t.Errorf("values:\n%v, want\n%v", values, want)
	}
	if want := []Error{{3, 2, "self.x", "AttributeError: 'Profiles' object has no attribute 'x'"}}; !reflect.DeepEqual(r.Errors, want) {
		t.Errorf("errors: %v", r.Errors)
	}
	if len(r.Frames) != 4 || r.Frames[0].Function != "resolve" || r.Frames[3].Function != "combine" {
		t.Errorf("frames: %v", r.Frames)
	}
	if got := r.Stops[3]; got.Event != "return" || got.Returns != "{'retries': 5,\n'pause': 1}" {
		t.Errorf("return: %+v", got)
	}
}

// Pdb shortens a returned value, so a bracket of it may stay open.
func TestRecordOfAShortenedReturnValue(t *testing.T) {
	r := recordOf(rowsOf(t, pdb("n", "--Return--\n> m.py(3)f()-><Quantifier (...' 'eggs'){2,}>\n-> return q\nCurrent frame: m.py:3 in f (about to return)")), "")
	if len(r.Stops) != 1 || r.Stops[0].Returns != "<Quantifier (...' 'eggs'){2,}>" {
		t.Errorf("%+v", r.Stops)
	}
}

// A function that an error ends returns nothing, although pdb shows None.
func TestRecordOfAnError(t *testing.T) {
	rows := rowsOf(t, pdb("n", "TypeError: no\n> m.py(3)f()\n-> return g()\nCurrent frame: m.py:3 in f (an exception is being raised)"), pdb("r", "--Return--\n> m.py(3)f()->None\n-> return g()\nCurrent frame: m.py:3 in f (about to return)"))
	rows[0].DebuggerEvent = new("exception")
	r := recordOf(rows, "")
	if len(r.Stops) != 2 || r.Stops[0].Event != "exception" || r.Stops[1].Returns != "" || len(r.Values) > 0 {
		t.Errorf("%+v %+v", r.Stops, r.Values)
	}
}

// Pytest shows a function that is defined in a test with less indentation than its file has.
func TestCallInANestedFunction(t *testing.T) {
	rows := rowsOf(t, call{"view", map[string]any{"path": "tests/test_m.py"}, "tests/test_m.py, lines 1-5 of 5\n    1  class T:\n    2      def test_b(self):\n    3          def check(x):\n    4              assert half(x) == 1\n    5          check(1)", nil})
	rows[0].Targets = []string{"tests/test_m.py:1-5"}
	r := recordOf(rows, "")
	reported := r.Lines[2]
	reported.Text, reported.isExact = "    def check(x):", false
	r.Lines = append(r.Lines, reported)
	if got := Check(schemas.Claim{Kind: schemas.ClaimCalls, Caller: "tests/test_m.py::T::test_b", Function: "half"}, r); got.Verdict != schemas.ClaimTrue {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

func TestRecordOfTests(t *testing.T) {
	rows := rowsOf(t,
		call{tool: "eval", answer: `The tests do not pass. 6 passed, 2 failed.
  tests/test_courier.py::test_bench_sends_once (failed)
  tests/test_courier.py::TestX::test_plain (error)

......FF                                                                 [100%]
=================================== FAILURES ===================================
____________________________ test_bench_sends_once _____________________________

    def test_bench_sends_once(profiles):
>       assert line.attempts == 1
E       assert 6 == 1
E        +  where 6 = <test_courier.Line object at 0x...>.attempts

tests/test_courier.py:67: AssertionError
__________________________ TestX.test_plain __________________________

    def test_plain(profiles):
>       Courier(profiles).send("test-bench")

tests/test_courier.py:72: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
>       raise ValueError("x")
E       ValueError: x

courier/delivery.py:9: ValueError
=========================== short test summary info ============================
FAILED tests/test_courier.py::test_bench_sends_once - assert 6...
2 failed, 6 passed`},
		call{tool: "bash", arguments: map[string]any{"command": "python -m unittest"}, answer: `F..
======================================================================
FAIL: test_sum (test_a.TestA)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/testbed/test_a.py", line 7, in test_sum
    self.assertEqual(total([1]), 1)
AssertionError: 2 != 1

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1)`},
		call{tool: "edit", arguments: map[string]any{"path": "courier/options.py"}, answer: "Replaced line 24"},
		call{tool: "eval", answer: "The tests pass. 8 passed, 0 failed.\n\n8 passed"},
	)
	r := recordOf(rows, "/testbed")
	want := []TestRun{
		{1, 6, 2, []TestResult{
			{"tests/test_courier.py::test_bench_sends_once", "failed", "assert 6 == 1", []string{"+  where 6 = <test_courier.Line object at 0x...>.attempts"}, []Place{{"tests/test_courier.py", 67}}},
			{"tests/test_courier.py::TestX::test_plain", "failed", "ValueError: x", nil, []Place{{"tests/test_courier.py", 72}, {"courier/delivery.py", 9}}},
		}},
		{2, 2, 1, []TestResult{{"test_sum", "failed", "AssertionError: 2 != 1", nil, []Place{{"test_a.py", 7}}}}},
		{4, 8, 0, nil},
	}
	if !reflect.DeepEqual(r.Tests, want) {
		t.Errorf("tests:\n%+v, want\n%+v", r.Tests, want)
	}
	if step, ok := r.FirstEdit(); step != 3 || !ok {
		t.Errorf("first edit: %d, %v", step, ok)
	}
}

func TestBareTest(t *testing.T) {
	for id, want := range map[string]string{"a.py::T::test_x": "test_x", "a.py::test_x[[::1]-2]": "test_x[[::1]-2]", "tests.test_a.T.test_x": "test_x"} {
		if got := bareTest(id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}
