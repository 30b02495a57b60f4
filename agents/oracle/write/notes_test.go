package write

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// program returns a source that has shown a file of the program from a line on.
func program(first int, text string) *source {
	s := &source{lines: map[string]map[int]string{}}
	for i, line := range strings.Split(strings.TrimPrefix(text, "\n"), "\n") {
		s.add("p.py", first+i, line)
	}
	return s
}

func TestSource(t *testing.T) {
	s := program(10, `
class Cart(Base):
    rate = 1

    def total(self, items, *, tax=[1,
                               2]):
        """Return the
        total."""
        total = 0  # the sum
        for item, (n, _) in items:
            total += (item.price *
                      n)
        with open("x") as log:
            pass
        return total

def other(): pass`)
	all := s.Functions()
	if len(all) != 3 || all[1].Name != "total" || all[1].Class != "Cart" || all[2].Class != "" {
		t.Fatalf("%+v", all)
	}
	f := all[1]
	if body := s.body(f); body[0] != 13 || body[len(body)-1] != 23 {
		t.Errorf("body: %v", body)
	}
	var lines []string
	for _, st := range s.statements(f) {
		lines = append(lines, fmt.Sprintf("%d-%d %s", st.Line, st.last, st.kind))
	}
	want := []string{"17-17 assign", "18-18 loop", "19-20 update", "21-21 other", "22-22 other", "23-23 return"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if names := s.names(f); !slices.Equal(names, []string{"self", "items", "tax", "total", "item", "n", "log"}) {
		t.Errorf("names: %q", names)
	}
	if at, ok := s.FunctionAt(Place{"p.py", 20}); !ok || at.Name != "total" {
		t.Errorf("line 20 is in %q", at.Name)
	}
}

// A function that was shown in part ends with the last shown line.
const severalLines = `def f(a, b, rates):
    if (
        a
        and b
    ):
        a = 1
    if not (
            # Why.
            a and
            not b):
        a += (
            b + 1
        )
    total = (a +
             b)
    total = max(
        a,
        b)
    for name in (
            n for n in rates):
        rates[name] = a
    assert (
        total
    )
    return (
        total
        + 1
    )
f(1, 1, {"a": 1})
`

// The debugger stops before a statement runs: of its lines, Python runs that of the breakpoint first.
func TestStatementsOfSeveralLines(t *testing.T) {
	s := program(1, severalLines)
	python := exec.Command("python3", "-c", `import sys
lines = []
def trace(frame, event, arg):
    if event == "line" and frame.f_code.co_name == "f":
        lines.append(frame.f_lineno)
    return trace
sys.settrace(trace)
exec(compile(sys.stdin.read(), "f.py", "exec"))
print(*lines)`)
	python.Stdin = strings.NewReader(severalLines)
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	runs, head := strings.Fields(string(out)), 2
	statements := s.statements(s.Functions()[0])
	for _, st := range statements {
		first := slices.IndexFunc(runs, func(line string) bool {
			n, _ := strconv.Atoi(line)
			return head <= n && n <= st.last
		})
		if first < 0 || runs[first] != strconv.Itoa(st.Line) {
			t.Errorf("a breakpoint at line %d of a statement in lines %d to %d; Python runs lines %v", st.Line, head, st.last, runs)
		}
		head = st.last + 1
	}
	if len(statements) != 10 {
		t.Errorf("%d statements", len(statements))
	}
}

func TestPartlyShownFunction(t *testing.T) {
	s := program(1, "def f(a):\n    b = a\n\n")
	if body := s.body(s.Functions()[0]); len(body) != 2 {
		t.Errorf("%v", body)
	}
}

func TestReadFailures(t *testing.T) {
	pytest := `The tests do not pass. 1 passed, 1 failed.
  tests/test_a.py::T::test_x[1] (failed)

___________________ T.test_x[1] ___________________

    def test_x(self, n):
>       assert f(n) == 2

tests/test_a.py:7:
_ _ _ _ _
    def f(n):
>       return n / 0
E       ZeroDivisionError: division by zero

src/p.py:3: ZeroDivisionError
`
	want := []Failure{{ID: "tests/test_a.py::T::test_x[1]", At: Place{"tests/test_a.py", 7}, Message: "ZeroDivisionError: division by zero"}}
	compare := func(text string, want []Failure) {
		t.Helper()
		got := readFailures(text, "/testbed")
		for i := range got {
			got[i].report, got[i].Frames, got[i].symptoms = "", nil, nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Failure{})); diff != "" {
			t.Error(diff)
		}
	}
	compare(strings.ReplaceAll(pytest, "test_a.py:7:\n", "test_a.py:7: \n"), want)
	compare(strings.NewReplacer("test_a.py:7:\n", "test_a.py:7: \n", "___________________", "_").Replace(pytest), want) // of a long name
	for id, head := range map[string]string{"T::test_x[a::b]": "T.test_x[a::b]", "T::test_x": "T.test_x (text='a')"} {
		text := strings.NewReplacer("test_a.py:7:\n", "test_a.py:7: \n", "T::test_x[1]", id, "T.test_x[1]", head).Replace(pytest)
		compare(text, []Failure{{ID: "tests/test_a.py::" + id, At: want[0].At, Message: want[0].Message}})
	}
	compare(`The tests do not pass. 1 passed, 1 failed.
  test_a.T.test_x (failed)

F.
======================================================================
FAIL: test_x (test_a.T.test_x)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/testbed/tests/test_a.py", line 5, in test_x
    self.assertEqual(f(1), 2)
AssertionError: 3 != 2

----------------------------------------------------------------------
`, []Failure{{ID: "test_a.T.test_x", At: Place{"tests/test_a.py", 5}, Message: "AssertionError: 3 != 2"}})
}

// transcript builds the transcript of calls of the debugger.
type transcript struct{ agents.Transcript }

func (t *transcript) pdb(command, text string, frame *schemas.Frame) {
	text += "\nCurrent frame: p.py:1 in f\n"
	t.Steps = append(t.Steps, schemas.Step{
		Index:       len(t.Steps),
		ToolCall:    &schemas.ToolCall{Name: "pdb", Arguments: schemas.NewToolCall("pdb", map[string]any{"command": command}).Arguments},
		Observation: &schemas.Observation{Text: text, IsError: strings.HasPrefix(text, "***")},
		State:       &schemas.EnvState{Frame: frame},
	})
}

func TestNotesOfTheDebugger(t *testing.T) {
	var tr transcript
	at := func(line int, event string) *schemas.Frame {
		return &schemas.Frame{File: "p.py", Line: line, Function: "f", Event: event, Depth: 3}
	}
	tr.pdb("tbreak p.py:3", "The program is paused before its first line: x", at(1, "line"))
	tr.pdb("c", "Breakpoint 1 hit (temporary: now removed).\n> p.py(3)f()\n-> x = a + b", at(3, "line"))
	tr.pdb("a", "a = 1\nb = {'k': [2]}", at(3, "line"))
	tr.pdb("p a, b", "(1, {'k': [2]})", at(3, "line"))
	tr.pdb("p c", "*** NameError: name 'c' is not defined", at(3, "line"))
	tr.pdb("n", "TypeError: no\n> p.py(3)f()\n-> x = a + b", at(3, "exception"))
	tr.pdb("r", "--Return--\n> p.py(9)f()->{'z': 1}\n-> return x", at(9, "return"))
	n := Read(&tr.Transcript)
	want := []Stop{
		{Place: Place{"p.py", 3}, Function: "f", Event: "line", Depth: 3, Run: 1, Hit: 1, byBreakpoint: true, breakpoint: "1", asked: true, Values: []Value{
			{"a", "1", false, 0}, {"b", "{'k': [2]}", false, 0}, {"a, b", "(1, {'k': [2]})", false, 3}, {"a", "1", false, 0}, {"b", "{'k': [2]}", false, 0},
			{"c", "NameError: name 'c' is not defined", true, 0}}},
		{Place: Place{"p.py", 3}, Function: "f", Event: "exception", Depth: 3, Run: 1, Hit: 1, Raises: "TypeError: no"},
		{Place: Place{"p.py", 9}, Function: "f", Event: "return", Depth: 3, Run: 1, Returns: "{'z': 1}"},
	}
	if diff := cmp.Diff(want, n.Stops, cmp.AllowUnexported(Stop{}, Value{})); diff != "" {
		t.Error(diff)
	}
	if n.At() == nil || n.Calls != 7 {
		t.Errorf("paused at %v after %d calls", n.At(), n.Calls)
	}
	tr.pdb("c", "The program has ended.", nil)
	if Read(&tr.Transcript).At() != nil {
		t.Error("the program is paused after its end")
	}
}

// A breakpoint can wait for a call that has a value of the test. After a KeyError, the strings that the debugger has printed
// are candidates for the key.
// After a command that did not end in time, the agent looks where the program is and lets it run on once, and then sets no
// other breakpoint.
func TestStuckProgram(t *testing.T) {
	frame := &schemas.Frame{File: "test_p.py", Line: 7, Function: "test_f", Event: "line", Depth: 2}
	var tr transcript
	command := func(name, text string, timedOut bool) []string {
		tr.pdb(name, text, frame)
		tr.Steps[len(tr.Steps)-1].Observation.IsError = timedOut
		tr.Steps[len(tr.Steps)-1].Observation.TimedOut = timedOut
		var out []string
		for _, o := range Read(&tr.Transcript).stuckOptions() {
			out = append(out, o.Kind+": "+o.say.text)
		}
		return out
	}
	if got := command("b p.py:3", "Breakpoint 1 set at p.py:3", false); got != nil {
		t.Errorf("before the timeout: %q", got)
	}
	got := command("c", "The command timed out after 10 s; the program was interrupted at test_p.py:7.", true)
	if len(got) != 2 || !strings.HasPrefix(got[0], "wait: The program did not get there within the time limit.") || !strings.HasPrefix(got[1], "where: ") {
		t.Errorf("after the timeout: %q", got)
	}
	got = command("w", "> test_p.py(7)test_f()\n-> time.sleep(1)", false)
	if len(got) != 1 || !strings.HasPrefix(got[0], "wait: It ") || !strings.Contains(got[0], "`test_f`") || !strings.Contains(got[0], "line 7 of test_p.py") {
		t.Errorf("after the stack: %q", got)
	}
	if got = command("c", "The command timed out after 10 s; the program was interrupted at test_p.py:7.", true); got != nil {
		t.Errorf("after the second timeout: %q", got)
	}
	n := Read(&tr.Transcript)
	n.command, n.Test, n.tools = "pytest", &Failure{ID: "test_p.py::test_f"}, []string{"pdb"}
	n.points = []schemas.Breakpoint{{File: "p.py", Line: 3}}
	if out := n.startOptions(); n.testCommand() == "" || out != nil {
		t.Errorf("after two timeouts: %d options", len(out))
	}
	n.Timeouts = 1
	if n.startOptions() == nil {
		t.Error("no options after one timeout")
	}
}

// The agent asks only once for arguments, even if the debugger cannot print them.
func TestArgumentsThatFail(t *testing.T) {
	var tr transcript
	for _, command := range []string{"tbreak p.py:2", "c", "a"} {
		text := "> p.py(2)f()"
		if command == "a" {
			text = "*** AttributeError: 'F' object has no attribute 'x'"
		}
		tr.pdb(command, text, &schemas.Frame{File: "p.py", Line: 2, Function: "f", Event: "line"})
		n := Read(&tr.Transcript)
		n.source = *program(1, "def f(self, b):\n    return b")
		n.Test = &Failure{}
		asks := slices.ContainsFunc(n.stopOptions(), func(o Option) bool { return o.Kind == Arguments })
		if asks != (command == "c") {
			t.Errorf("after %s, the agent can ask for arguments: %v", command, asks)
		}
	}
}

// If the program ends without a stop, the agent says so.
func TestMissedBreakpoint(t *testing.T) {
	var tr transcript
	tr.pdb("tbreak p.py:3", "The program is paused before its first line: x", &schemas.Frame{File: "pytest.py", Line: 1})
	tr.Steps[len(tr.Steps)-1].State.Breakpoints = []schemas.Breakpoint{{File: "p.py", Line: 3, Temporary: true}}
	tr.pdb("c", "1 failed\nThe program has ended with exit code 1.", nil)
	tr.Steps[len(tr.Steps)-1].State.Breakpoints = tr.Steps[len(tr.Steps)-2].State.Breakpoints
	n := Read(&tr.Transcript)
	n.source = *program(1, "def f(a):\n    a += 1\n    return a")
	want := []schemas.Claim{{Kind: schemas.ClaimNotReached, Function: "f"}}
	if m := n.learned(); n.Missed != 1 || !strings.Contains(m.text, "`f`") || cmp.Diff(want, m.claims) != "" {
		t.Errorf("%d runs without a stop; %q %v", n.Missed, m.text, m.claims)
	}
}

func TestOptionsAtAStop(t *testing.T) {
	var tr transcript
	at := func(line int) *schemas.Frame {
		return &schemas.Frame{File: "p.py", Line: line, Function: "f", Event: "line", Depth: 3}
	}
	tr.pdb("b p.py:2", "The program is paused before its first line: x", at(1))
	tr.pdb("c", "Breakpoint 1 hit.\n> p.py(2)f()\n-> x = groups['a'] + n", at(2))
	tr.Steps[1].State.Breakpoints = []schemas.Breakpoint{{File: "p.py", Line: 2, Enabled: true, Hits: 1}}
	tr.pdb("a", "text = 'one'\nn = 1", at(2))
	tr.pdb("p groups", "{'b': 5}", at(2))
	for i := range tr.Steps[2:] {
		tr.Steps[2+i].State.Breakpoints = tr.Steps[1].State.Breakpoints
	}
	n := Read(&tr.Transcript)
	n.Test, n.command = &Failure{ID: "test_p.py::test", At: Place{"test_p.py", 2}}, "pytest"
	for file, lines := range map[string][]string{
		"p.py":      {"def f(text, n):", "    x = groups['a'] + n", "    return x"},
		"test_p.py": {"def test():", "    assert f('one', 1) == f('two', 2)"},
	} {
		for i, text := range lines {
			n.source.add(file, i+1, text)
		}
	}
	var commands []string
	for _, o := range n.stopOptions() {
		if o.Kind == Narrow {
			commands = append(commands, argument(schemas.Step{ToolCall: &o.call}, "command"))
		}
	}
	want := []string{"condition 1 text != 'one'", "condition 1 text == 'two'", "condition 1 n != 1", "condition 1 n == 2"}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Error(diff)
	}
	f, _ := n.FunctionAt(Place{"p.py", 2})
	if got := n.printedStrings(f, []string{`"one"`}); !slices.Equal(got, []string{"'b'"}) {
		t.Errorf("printed strings %q", got)
	}
	if got := n.Container(Place{"p.py", 2}); got != "groups" {
		t.Errorf("container %q", got)
	}
}

// The stack says which function calls the one in which the program is paused.
func TestStack(t *testing.T) {
	n := &Notes{}
	got := n.learnedStack("  /usr/lib/python3/unittest/case.py(57)run()\n-> x\n  shop/cart.py(17)total()\n-> rate = discount(a)\n> shop/prices.py(6)discount()\n-> if a:\n\nCurrent frame: shop/prices.py:6 in discount")
	want := schemas.Claim{Kind: schemas.ClaimCalls, Caller: "total", Function: "discount"}
	if len(got.claims) != 1 || got.claims[0] != want || !strings.Contains(got.text, "`total`") || !strings.Contains(got.text, "line 17") {
		t.Errorf("%+v", got)
	}
}

// A comparison ends when the other test ends, and not at the first other breakpoint.
func TestContrastPassesOtherBreakpoints(t *testing.T) {
	n := &Notes{Test: &Failure{ID: "test_p.py::test_f"}, command: "pytest", entry: "pytest test_p.py::test_g",
		contrast: &contrast{test: "test_g", place: Place{"p.py", 3}, expression: "a + b", outcome: "3"}}
	run := func(frame *schemas.Frame) {
		s := schemas.Step{Observation: &schemas.Observation{}, State: &schemas.EnvState{Frame: frame}}
		n.debugContrast(s, "c", "")
	}
	run(&schemas.Frame{File: "p.py", Line: 9})
	if n.contrast.isDone() || !strings.Contains(n.continueContrast()[0].say.text, "another breakpoint") {
		t.Errorf("%+v after another breakpoint", n.contrast)
	}
	run(nil)
	if m := n.learnedFromContrast(); !n.contrast.isVain() || !strings.Contains(m.text, "`test_g` does not get to line 3") {
		t.Errorf("%+v at the end: %q", n.contrast, m.text)
	}
	cause := say("line 3 of `f` is the cause")
	if m := n.so(cause); m.text != "Line 3 of `f` is the cause." {
		t.Errorf("after a comparison in vain: %q", m.text)
	}
	n.entry = "pytest test_p.py::test_f"
	if m := n.so(cause); m.text != "So line 3 of `f` is the cause." {
		t.Errorf("otherwise: %q", m.text)
	}
}
