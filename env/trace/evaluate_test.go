package trace

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// TestEachPythonEvaluates evaluates expressions at lines, and where functions return, in both versions. An
// expression that changes a value or never ends does not change the run.
func TestEachPythonEvaluates(t *testing.T) {
	every(t, func(t *testing.T, python string) {
		p := program(`def add(items, limit):
    total = 0
    for item in items:
        if item > limit:
            total += item
    return total


def report(items):
    return "sum %d" % add(items, 3)
`, `items = [3, 1, 5]
text = p.report(items)
self.assertEqual(items, [3, 1, 5])
self.assertEqual(text, "sum 8")`)
		pair := p.trace(t, python, "test", "item > limit", "item >= limit")
		fixedLine, fixedHit, ok, _ := pair.Match("return", "p.py", 6, 1)
		if !ok || fixedLine != 6 || fixedHit != 1 {
			t.Errorf("the return of add corresponds to line %d, hit %d", fixedLine, fixedHit)
		}
		if _, fixedHit, ok, _ := pair.Match("line", "p.py", 3, 4); !ok || fixedHit != 4 {
			t.Errorf("the last run of line 3 corresponds to hit %d, %v", fixedHit, ok)
		}
		queries := []schemas.TraceQuery{
			{Kind: "line", File: "p.py", Line: 3, Hits: []int{2, 4}, Expressions: []schemas.TraceExpression{
				{Source: "total", Show: schemas.ShowRepr}, {Source: "[item + limit for item in items]", Show: schemas.ShowPretty}, {Source: "missing", Show: schemas.ShowRepr},
				{Source: "items.clear()", Show: schemas.ShowRepr},
			}},
			{Kind: "return", File: "p.py", Line: 6, Expressions: []schemas.TraceExpression{{Source: "return", Show: schemas.ShowRepr}, {Source: "'a' * 99", Show: schemas.ShowBrief}}},
			{Kind: "line", File: "p.py", Line: 6, Up: 1, Function: "report", Expressions: []schemas.TraceExpression{{Source: "items", Show: schemas.ShowString}}},
			{Kind: "line", File: "p.py", Line: 2, Expressions: []schemas.TraceExpression{{Source: "all(iter(int, 1)) or [0 for _ in iter(int, 1)]", Show: schemas.ShowRepr}}},
		}
		for _, fixed := range []bool{false, true} {
			var diff []byte
			if fixed {
				diff = patch(t, p, p.with("p.py", "item > limit", "item >= limit"))
			}
			got := map[[2]int]schemas.TraceReply{}
			replies, err := Evaluate(t.Context(), verifier(t, python), task("python3 -m unittest"), p.tree(t), diff, "test_p.T.test", queries)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range replies {
				got[[2]int{r.Query, r.Hit}] = r
			}
			total := map[bool][2]string{false: {"0", "5"}, true: {"3", "8"}}[fixed]
			check := func(query, hit, expression int, want string) {
				t.Helper()
				if r := got[[2]int{query, hit}]; len(r.Values) <= expression || r.Values[expression].Text != want {
					t.Errorf("fixed %v: query %d, hit %d: %+v, want %s", fixed, query, hit, r.Values, want)
				}
			}
			check(0, 2, 0, total[0])
			check(0, 4, 0, total[1])
			check(0, 4, 1, "[6, 4, 8]")
			check(1, 1, 0, total[1])
			check(1, 1, 1, "'aaaaaaaaaaaa...aaaaaaaaaaaaa'")
			if a, b := got[[2]int{0, 2}].Depth, got[[2]int{1, 1}].Depth; a == 0 || a != b {
				t.Errorf("%d and %d frames in the same call", a, b)
			}
			check(2, 1, 0, "[3, 1, 5]")
			if v := got[[2]int{0, 2}].Values; len(v) != 4 || v[2].Error != "NameError" {
				t.Errorf("an unknown name: %+v", v)
			}
			if _, answered := got[[2]int{3, 1}]; answered {
				t.Error("an expression that never ends has a value")
			}
		}
	})
}
