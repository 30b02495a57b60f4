package write

import (
	"testing"
)

// Why a line could matter is said by what depends on it in its function.
func TestRole(t *testing.T) {
	n := &Notes{Test: &Failure{Frames: []Place{{"p.py", 2}}}, source: *program(2, `
def f(items, limit):
    total = 0
    for item in items:
        if item > limit:
            break
        if not item:
            raise ValueError
        while item:
            item -= 1
        if item.ok:
            total += 1
        if item.log:
            print(item)
    label = "x"
    assert total
    return total`)}
	f, _ := n.FunctionAt(Place{"p.py", 3})
	want := map[int]string{
		3: "The result of `f` depends on `total`, which line 3 sets:", 4: "Line 4 decides what the loop runs over:", 5: "Line 5 decides whether the loop ends:",
		7: "Line 7 decides whether `f` raises an error:", 9: "Line 9 decides whether the loop goes on:", 10: "Line 10 changes `item`:",
		11: "Line 11 decides whether `total` changes in line 12:", 12: "The result of `f` depends on `total`, which line 12 changes:",
		13: "Line 13 decides what `f` does next:", 15: "Line 15 sets `label`:", 16: "Line 16 is", 17: "Line 17 computes what `f` returns:",
	}
	for _, st := range n.statements(f) {
		if role, ok := want[st.Line]; ok && n.role(f, st) != role {
			t.Errorf("line %d: %s", st.Line, n.role(f, st))
		}
	}
	n.Test.Frames[0].Line = 7
	for _, st := range n.statements(f) {
		if role := n.role(f, st); st.Line == 7 && role != "The traceback ends in line 7:" {
			t.Error(role)
		}
	}
}

// A line that sets what the line at the end of the traceback uses could be why that line fails.
func TestRoleOfWhatFails(t *testing.T) {
	n := &Notes{Test: &Failure{ID: "test_f", Message: "IndexError: list index out of range", Frames: []Place{{"test_p.py", 1}, {"p.py", 4}}}, source: *program(2, "def f(a):\n    last = len(a)\n    return a[last]")}
	f, st, _ := n.statementAt(Place{"p.py", 3})
	if role := n.role(f, st); role != "The error comes from line 4, which uses `last`, and line 3 sets that:" {
		t.Error(role)
	}
	outcome := Value{Expression: "last", Text: "2"}
	if m := n.cause(f, st, st.Place, "len(a)", outcome); m.text != "line 3 of `f` is the cause: it sets `last` to `2`" {
		t.Error(m.text)
	}
	if m := n.consequence(f, st, outcome, Value{}); m.text != "Line 4 uses `last` and raises `IndexError: list index out of range`." {
		t.Error(m.text)
	}
}
