package write

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// The agent evaluates nothing that changes the program's state.
func TestExpressionsWithEffects(t *testing.T) {
	for expression, want := range map[string]bool{
		"stack.pop() * stack.pop()": true, "enumerate(f.readlines())": true, "next(it)": true, "(n := 3)": true, "[x.append(1) for x in y]": true,
		"stack[-1] * stack[-2]": false, "pop + next": false, "'a.pop()'": false, "sorted(x)": false,
	} {
		if hasEffect(expression) != want {
			t.Errorf("%s has an effect: %v", expression, !want)
		}
	}
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(stack):\n    x = stack.pop() + 1\n    return x"), paused: true,
		Stops: []Stop{{Place: Place{"p.py", 2}, Function: "f", Event: "line"}}}
	for _, o := range n.stopOptions() {
		if strings.Contains(o.Expression, "pop") {
			t.Errorf("%s evaluates %s", o.Kind, o.Expression)
		}
	}
}

// The agent reads no iterator to its end, whether it has seen its value or how it was made.
func TestIteratorsStayUnread(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(rows):\n    pairs = zip(rows, rows)\n    return sorted(pairs), list(rows), len(pairs.x)"), paused: true,
		Stops: []Stop{{Place: Place{"p.py", 3}, Function: "f", Event: "line", Values: []Value{{Expression: "rows", Text: "<generator object g at 0x7f>"}}}}}
	f, _ := n.FunctionAt(Place{"p.py", 3})
	for expression, want := range map[string]bool{"sorted(pairs)": true, "list(rows)": true, "vars(rows)": true, "pairs": false, "len(columns)": false} {
		if n.hasEffect(f, expression) != want {
			t.Errorf("%s has an effect: %v", expression, !want)
		}
	}
	for _, o := range n.stopOptions() {
		if o.Kind == Print && o.Expression != "pairs" && o.Expression != "rows" || o.Kind == Try {
			t.Errorf("%s evaluates %s", o.Kind, o.Expression)
		}
	}
}

// A statement of several lines runs at once: the command n would stop in each of its lines.
func TestStatementOfSeveralLinesRunsAtOnce(t *testing.T) {
	const text = `
def f(a):
    x = [a +
         1]
    y = 2
    return (x +
            y)`
	for line, want := range map[int]string{2: "until 4", 4: "n", 5: "r"} {
		n := &Notes{Test: &Failure{}, source: *program(1, text), paused: true, Stops: []Stop{{Place: Place{"p.py", line}, Function: "f", Event: "line"}}}
		i := slices.IndexFunc(n.stopOptions(), func(o Option) bool { return o.Kind == Next })
		if i < 0 {
			t.Fatalf("line %d cannot run", line)
		}
		if got := argument(schemas.Step{ToolCall: &n.stopOptions()[i].call}, "command"); got != want {
			t.Errorf("line %d runs with %s, want %s", line, got, want)
		}
	}
}

// In a comprehension, the command n stops at the same line again.
func TestComprehensionRunsToItsEnd(t *testing.T) {
	at := func(line int) Stop {
		return Stop{Place: Place{"p.py", line}, Function: "f", Event: "line", Depth: 1}
	}
	for _, c := range []struct {
		stops []Stop
		want  string
	}{{[]Stop{at(2)}, "n"}, {[]Stop{at(2), at(2)}, "until 4"}, {[]Stop{at(4), at(2)}, "n"}} {
		n := &Notes{Test: &Failure{}, source: *program(1, "\ndef f(a):\n    x = [b for b in a]\n\n    return x"), paused: true, Stops: c.stops}
		i := slices.IndexFunc(n.stopOptions(), func(o Option) bool { return o.Kind == Next })
		if i < 0 {
			t.Fatal("the line cannot run")
		}
		if got := argument(schemas.Step{ToolCall: &n.stopOptions()[i].call}, "command"); got != c.want {
			t.Errorf("%v run on with %s, want %s", c.stops, got, c.want)
		}
	}
}

// The texts of two objects always differ, because they are addresses. Their attributes tell.
func TestAttributesOfObjects(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(a, b):\n    return a"), paused: true}
	f := n.Functions()[0]
	st := n.statements(f)[0]
	i := slices.IndexFunc(n.changes(f, st), func(c change) bool { return c.expression == "b" })
	other := n.changes(f, st)[i]
	stop := Stop{Place: st.Place, Function: "f", Event: "line", Values: []Value{{Expression: "a", Text: "<p.A object at 0x1>"}, {Expression: "b", Text: "<p.A object at 0x2>"}}}
	n.Stops = []Stop{stop}
	if n.compare(st, other).differs() {
		t.Error("two addresses differ")
	}
	if !slices.Contains(n.printable(f, stop), "vars(a)") {
		t.Errorf("the attributes cannot be printed: %q", n.printable(f, stop))
	}
	n.Stops[0].Values = append(stop.Values, Value{Expression: "vars(a)", Text: "{'n': 1}"}, Value{Expression: "vars(b)", Text: "{'n': 2}"})
	x := n.compare(st, other)
	if !x.differs() || x.change.original != "vars(a)" || x.change.expression != "vars(b)" {
		t.Errorf("%+v", x)
	}
}

// The agent lets a breakpoint ignore only numbers of hits that it has seen.
func TestSkippedHits(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(a):\n    return a + 4"), points: []schemas.Breakpoint{{File: "p.py", Line: 2}}}
	c := pdb("c")
	n.last = schemas.Step{ToolCall: &c}
	var counts []int
	for _, o := range n.skipOptions(Stop{Place: Place{"p.py", 2}, breakpoint: "1"}) {
		counts = append(counts, o.Count)
	}
	if !slices.Equal(counts, []int{1, 4}) {
		t.Errorf("%d", counts)
	}
}

// A breakpoint in a nested function belongs to that function.
func TestBreakpointInNestedFunction(t *testing.T) {
	n := &Notes{Test: &Failure{ID: "test_p.py::test_f"}, command: "pytest", tools: []string{"pdb"}, source: *program(1, "def f(a):\n    def g(b):\n        return b\n    return g(a)\n")}
	n.last = schemas.Step{ToolCall: &schemas.ToolCall{}}
	var owners []string
	for _, o := range n.startOptions() {
		if o.Place.Line == 3 {
			owners = append(owners, o.Function.Name)
		}
	}
	if !slices.Equal(owners, []string{"g", "g"}) { // with b and with tbreak
		t.Errorf("line 3 is attributed to %q", owners)
	}
}

func TestRaised(t *testing.T) {
	for text, want := range map[string]string{
		"ValueError: x\n> p.py(3)f()\n-> raise": "ValueError: x", "GeneratorExit\n> p.py(3)f()\n-> yield": "", "StopIteration: 3\n> p.py(3)f()\n-> next": "",
	} {
		if got := raised(text, "exception"); got != want {
			t.Errorf("%q raises %q", text, got)
		}
	}
}

// After the last statement of a loop, the program stops at the head of the loop, above. What the statement has set can be printed.
func TestResultOfLoopBody(t *testing.T) {
	n := &Notes{source: *program(1, "def f(self, a):\n    for x in a:\n        self.total = x"), Stops: []Stop{
		{Place: Place{"p.py", 3}, Function: "f", Event: "line"}, {Place: Place{"p.py", 2}, Function: "f", Event: "line"},
	}}
	if got := n.printable(n.Functions()[0], n.Stops[1]); !slices.Contains(got, "self.total") {
		t.Errorf("%q", got)
	}
}

// If the command until stops behind its line, the agent says so.
func TestUntilStopsElsewhere(t *testing.T) {
	for line, want := range map[int]string{3: "", 4: "4"} {
		c := pdb("until 3")
		n := &Notes{paused: true, last: schemas.Step{ToolCall: &c, Observation: &schemas.Observation{}}, Stops: []Stop{{Place: Place{"p.py", line}, Function: "f", Event: "line"}}}
		if got := n.learned().text; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("stopped at line %d: %q", line, got)
		}
	}
}

// When a function returns, what its other branch would have changed can be printed.
func TestPrintableAtAReturn(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def add(self, x):\n    if x in self:\n        self.elements.append(x)"), paused: true}
	f := n.Functions()[0]
	stop := Stop{Place: Place{"p.py", 2}, Function: "add", Event: "return", Returns: "None"}
	if got := n.printable(f, stop); !slices.Contains(got, "self.elements") {
		t.Errorf("%q", got)
	}
}
