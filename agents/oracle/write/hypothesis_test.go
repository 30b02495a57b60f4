package write

import (
	"slices"
	"strings"
	"testing"
)

func TestKindsOfChanges(t *testing.T) {
	words := vocabulary{names: []string{"a", "b", "key"}}
	for _, c := range []struct{ statement, repair, want string }{
		{"if a < b:", "if a <= b:", boundChange},
		{"if a < b:", "if a > b:", reverseChange},
		{"if a == b:", "if a != b:", reverseChange},
		{"if a in b:", "if a not in b:", reverseChange},
		{"if a:", "if not a:", reverseChange},
		{"if a and b:", "if a or b:", logicChange},
		{"x = a + b", "x = a - b", operatorChange},
		{"x = a[1:]", "x = a[2:]", numberChange},
		{"x = a", "x = b", nameChange},
		{"x = a - b", "x = b - a", orderChange},
		{"x = f(a, b)", "x = f(b, a)", orderChange},
		{"x = a[1:]", "x = a[:]", removalChange},
		{"x = f(a)", "x = f(a, key=key)", argumentChange},
		{"x = f(a)", "x = str(f(a))", otherChange},
	} {
		s, _ := parseStatement(c.statement)
		all := s.variants(words)
		i := slices.IndexFunc(all, func(v variant) bool { return v.statement == c.repair })
		if i < 0 {
			t.Errorf("%s is not a variant of %s", c.repair, c.statement)
		} else if got := all[i].kindOf(); got != c.want {
			t.Errorf("%s to %s is %q, want %q", c.statement, c.repair, got, c.want)
		}
	}
}

// A bound is suspect if both sides of the comparison are equal.
func TestSuspectedBound(t *testing.T) {
	n := &Notes{}
	s, _ := parseStatement("if a < LIMIT:")
	for _, v := range s.variants(vocabulary{}) {
		if v.statement != "if a <= LIMIT:" {
			continue
		}
		stop := Stop{Values: []Value{{Expression: "a", Text: "5"}, {Expression: "LIMIT", Text: "5"}}}
		if got := n.suspect(change{variant: v}, stop).text; got != "`a` and `LIMIT` are equal here. Perhaps the limit itself should count, too." {
			t.Error(got)
		}
		stop.Values[0].Text = "4"
		if got := n.suspect(change{variant: v}, stop).text; got != "Perhaps the limit itself should count, too." {
			t.Error(got)
		}
	}
}

// Lines can change places if both are simple statements of one block.
func TestExchanges(t *testing.T) {
	n := &Notes{source: *program(1, "def f(a):\n    b = a\n    c = b\n    if c:\n        d = c\n    e = a\n    g(e)\n    return e")}
	var got []int
	for _, x := range n.exchanges(n.Functions()[0]) {
		got = append(got, x.first.Line)
	}
	if !slices.Equal(got, []int{2, 6}) {
		t.Errorf("exchanges at %v", got)
	}
}

func TestSidesOfAComparison(t *testing.T) {
	for message, want := range map[string][2]string{
		"AssertionError: 3 != 2":                    {"3", "2"},
		"assert [1, 'a == b'] == [2]":               {"[1, 'a == b']", "[2]"},
		"AssertionError: assert f(1 == 1) == None":  {"f(1 == 1)", "None"},
		"AssertionError: 0 != 1 : I should be 1":    {"0", "1"},
		"AssertionError: 0 != 1 : that isn't right": {"0", "1"},
		"assert {'a': 1} == {'a': 2}, 'wrong'":      {"{'a': 1}", "{'a': 2}"},
		"ValueError: x":                             {},
	} {
		n := &Notes{Test: &Failure{Message: message}}
		if left, right, ok := n.sides(); left != want[0] || right != want[1] || ok != (want[0] != "") {
			t.Errorf("%s: %q and %q", message, left, right)
		}
	}
}

// The agent compares with the closest test that does not fail.
func TestOtherTest(t *testing.T) {
	n := &Notes{source: source{lines: map[string]map[int]string{}}, command: "python3 -m pytest -q", Failures: []Failure{{ID: "test_p.py::test_c[1]"}, {ID: "test_p.py::test_b"}}}
	n.Test = &Failure{ID: "test_p.py::test_c[1]", At: Place{"test_p.py", 8}}
	for i, line := range []string{"def test_a():", "    pass", "def test_b():", "    pass", "def helper():", "    pass", "def test_c(n):", "    assert n", "class T:", "    def test_d(self):"} {
		n.source.add("test_p.py", i+1, line)
	}
	if name, entry := n.otherTest(); name != "test_a" || entry != "python3 -m pytest -q test_p.py::test_a" {
		t.Errorf("%s: %s", name, entry)
	}
}

func TestBranches(t *testing.T) {
	for _, c := range []struct{ statement, value, want string }{
		{"if a:", "0", "the program skips this branch"},
		{"if a:", "[1]", "the program takes this branch"},
		{"if a: return", "'x'", "the function returns at once"},
		{"while a:", "False", "the loop ends"},
		{"if a:", "<object>", ""},
		{"assert a", "0", ""},
	} {
		s, _ := parseStatement(c.statement)
		if got := s.branch(Value{Text: c.value}); got != c.want {
			t.Errorf("%s with %s: %q", c.statement, c.value, got)
		}
	}
}

// A function that Python calls without naming it, or that a shown function mentions, can be read for that reason.
func TestReasons(t *testing.T) {
	n := &Notes{source: *program(1, "class A:\n    def __init__(self):\n        self.x = 1\n    def __iter__(self):\n        return iter(self.items)\n    def items(self):\n        pass\n    def other(self):\n        pass")}
	n.Test = &Failure{ID: "test_p.py::test_total_price"}
	for name, want := range map[string]string{
		"__init__": "A new `A` runs its `__init__`.", "__iter__": "Python calls `__iter__` of `A` without naming it.",
		"items": "`__iter__` mentions `items`.", "total": "`total` in p.py has `total` in its name, like the test.", "other": "`other` is another method of `A`.", "unknown": "",
	} {
		f := Function{Place: Place{"p.py", 99}, Name: name}
		if name != "unknown" {
			f.Class = "A"
		}
		if got := n.reason(f); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An experiment compares values of one call, but not necessarily of the last one.
func TestExperimentsBelongToOneCall(t *testing.T) {
	n := &Notes{source: *program(1, "def f(a):\n    x = a + 1\n    return x")}
	f := n.Functions()[0]
	st := n.statements(f)[0]
	stop := func(sum, difference string) Stop {
		s := Stop{Place: st.Place, Function: "f", Event: "line", byBreakpoint: true}
		for expression, value := range map[string]string{"a + 1": sum, "a - 1": difference} {
			if value != "" {
				s.Values = append(s.Values, Value{Expression: expression, Text: value})
			}
		}
		return s
	}
	var minus change
	for _, c := range n.changes(f, st) {
		if c.expression == "a - 1" {
			minus = c
		}
	}
	n.Stops = []Stop{stop("3", ""), stop("", "0")}
	if x := n.compare(st, minus); x.differs() {
		t.Errorf("values of two calls are compared: %+v", x)
	}
	n.Stops = []Stop{stop("2", "0"), stop("2", "")}
	if x := n.compare(st, minus); !x.differs() || x.outcome.Text != "2" {
		t.Errorf("the experiment of the earlier call is forgotten: %+v", x)
	}
	n.Stops = []Stop{stop("2", "0"), stop("3", "")}
	if x := n.compare(st, minus); x.differs() {
		t.Errorf("the statement has computed another value since the experiment: %+v", x)
	}
	if v, ok := n.outcome(st); !ok || v.Text != "3" {
		t.Errorf("outcome: %v", v)
	}
	n.Stops = append(n.Stops, stop("", ""))
	if v, ok := n.outcome(st); ok {
		t.Errorf("outcome: %v", v)
	}
}

// A change of a statement of several lines changes one of them. It can use the attributes of the whole class.
// After an assignment, its target has another value than the one that a change of it would have used.
func TestNoExperimentWithANewValue(t *testing.T) {
	n := &Notes{Test: &Failure{}, source: *program(1, "def f(a):\n    s = a\n    s = '-'\n    return s"), paused: true}
	before := Stop{Place: Place{"p.py", 3}, Function: "f", Event: "line", Values: []Value{{Expression: "s", Text: "'x'"}}}
	after := Stop{Place: Place{"p.py", 4}, Function: "f", Event: "line", Values: []Value{{Expression: "s", Text: "'-'"}}}
	tries := func() (out []string) {
		for _, o := range n.stopOptions() {
			if o.Kind == Try && o.Place.Line == 3 {
				out = append(out, o.Expression)
			}
		}
		return out
	}
	n.Stops = []Stop{before, after}
	if got := tries(); slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "s +") }) {
		t.Errorf("after the assignment, the agent evaluates %q", got)
	}
	f, st, _ := n.statementAt(Place{"p.py", 3})
	for _, c := range n.changes(f, st) {
		if !strings.Contains(c.expression, "s +") {
			continue
		}
		n.Stops[1].Values = append(after.Values, Value{Expression: c.expression, Text: "'--'"})
		if n.compare(st, c).differs() {
			t.Errorf("%s with the new value of s counts as an experiment", c.expression)
		}
		n.Stops[0].Values = append(before.Values, Value{Expression: "'-'", Text: "'-'"}, Value{Expression: c.expression, Text: "'x-'"})
		if !n.compare(st, c).differs() {
			t.Errorf("%s with the old value of s does not count as an experiment", c.expression)
		}
		return
	}
	t.Error("no change of the statement adds to s")
}

func TestChangesOfSeveralLines(t *testing.T) {
	n := &Notes{source: *program(1, `class Frame:
    def __init__(self, parent):
        self.parent, self.weight = parent, 1

    def pack(self, parts):
        if (
                parts[-1] == self.weight
                and parts
        ):
            return None

    def other(self):
        return self.parent`)}
	f := n.Functions()[2]
	st := n.statements(f)[0]
	if st.Line != 7 || st.head() != 6 {
		t.Fatalf("the statement begins at %d and stops at %d", st.head(), st.Line)
	}
	for _, want := range []change{{at: Place{"p.py", 7}, line: "                parts[0] == self.weight"}, {at: Place{"p.py", 7}, line: "                parts[-1] == self.parent"}} {
		if !slices.ContainsFunc(n.changes(f, st), func(c change) bool { return c.at == want.at && c.line == want.line }) {
			t.Errorf("no change to %q", want.line)
		}
	}
}

// The agent takes no detour with a change that makes no sense for the value of the statement.
func TestChangesThatFit(t *testing.T) {
	s := program(1, "def f(a, b):\n    x = a + b\n    if a < b:\n        return x\n    return 'n' + a")
	f := s.Functions()[0]
	fits := func(line int, outcome Value, kind string) bool {
		for _, st := range s.statements(f) {
			for _, v := range st.variants(vocabulary{names: []string{"a", "b", "x"}}) {
				if st.Line == line && v.kindOf() == kind && v.fits(st, outcome) {
					return true
				}
			}
		}
		return false
	}
	for _, c := range []struct {
		line    int
		outcome Value
		kind    string
		want    bool
	}{
		{2, Value{Text: "3"}, operatorChange, true}, {2, Value{Text: "[1]"}, operatorChange, false}, {2, Value{Text: "TypeError: no", IsError: true}, operatorChange, false},
		{3, Value{Text: "True"}, reverseChange, true}, {5, Value{Text: "'n1'"}, operatorChange, false},
	} {
		if got := fits(c.line, c.outcome, c.kind); got != c.want {
			t.Errorf("line %d, %s, %s: %v", c.line, c.outcome.Text, c.kind, got)
		}
	}
}
