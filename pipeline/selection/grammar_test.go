package selection_test

import (
	"fmt"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// grammar generates expressions of type bool from bytes, with the value that each must have
// for an episode: "yes", "no" or, if it depends on a null, "unknown".
type grammar struct {
	choices []byte
	row     *schemas.EpisodeRow
}

// next returns the next byte modulo n. It returns 0 if no byte is left, which ends each branch.
func (g *grammar) next(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	b := int(g.choices[0]) % n
	g.choices = g.choices[1:]
	return b
}

func verdictOf(known, is bool) string {
	switch {
	case !known:
		return "unknown"
	case is:
		return "yes"
	}
	return "no"
}

func (g *grammar) atom() (expr, want string) {
	e, k := g.row, g.next(7)
	compare := func(column, fraction string, known bool, value int) (string, string) {
		switch g.next(4) {
		case 0:
			return fmt.Sprintf("%s >= %d", column, k), verdictOf(known, value >= k)
		case 1:
			return fmt.Sprintf("%s < %d", column, k), verdictOf(known, value < k)
		case 2:
			return fmt.Sprintf("%s != %d%s", column, k, fraction), verdictOf(known, value != k)
		}
		return fmt.Sprintf("known(%s)", column), verdictOf(true, known)
	}
	switch g.next(7) {
	case 0:
		return "true", "yes"
	case 1:
		return "resolved", verdictOf(e.Resolved != nil, e.Resolved != nil && *e.Resolved)
	case 2:
		return compare("n_turns", "", true, int(e.NTurns))
	case 3:
		reward := 0
		if e.Reward != nil {
			reward = int(*e.Reward)
		}
		return compare("reward", ".0", e.Reward != nil, reward)
	case 4:
		return fmt.Sprintf("min_turns(%d)", k), verdictOf(true, int(e.NTurns) >= k)
	case 5:
		return fmt.Sprintf("model in [%q, %q]", "none", fmt.Sprint("m", k)), verdictOf(true, e.Model == "none" || e.Model == fmt.Sprint("m", k))
	}
	return fmt.Sprintf("steps.exists(s, s.step_index == %d)", k), verdictOf(true, k <= 3)
}

// expr returns an expression that is nested at most depth deep, and its value in Kleene's
// three-valued logic.
func (g *grammar) expr(depth int) (expr, want string) {
	kind := g.next(5)
	if depth == 0 || kind == 0 {
		return g.atom()
	}
	a, x := g.expr(depth - 1)
	if kind == 1 {
		return "!(" + a + ")", map[string]string{"yes": "no", "no": "yes", "unknown": "unknown"}[x]
	}
	b, y := g.expr(depth - 1)
	switch kind {
	case 2:
		return "(" + a + " && " + b + ")", kleene(x, y, "no", "yes")
	case 3:
		return "(" + a + " || " + b + ")", kleene(x, y, "yes", "no")
	}
	c, z := g.expr(depth - 1)
	want = "unknown"
	switch x {
	case "yes":
		want = y
	case "no":
		want = z
	}
	return "(" + a + " ? " + b + " : " + c + ")", want
}

// kleene combines two values: the result is strong if either value is strong, and weak if
// both are weak.
func kleene(x, y, strong, weak string) string {
	switch {
	case x == strong || y == strong:
		return strong
	case x == weak && y == weak:
		return weak
	}
	return "unknown"
}

// The expressions of the grammar are accepted and have the values of three-valued logic.
func FuzzGrammar(f *testing.F) {
	f.Add([]byte{2, 0, 1, 3, 0, 3, 1}, true, true)
	f.Add([]byte{1, 4, 0, 3, 3, 2, 0, 5, 0, 6, 2, 1}, false, false)
	f.Add([]byte("resolved or not"), false, true)
	f.Fuzz(func(t *testing.T, choices []byte, judged, rewarded bool) {
		e := episodes(1)[0]
		if e.Reward = nil; rewarded {
			e.Reward = new(3.0)
		}
		if !judged {
			e.Resolved = nil
		}
		g := &grammar{choices: choices, row: &e}
		expr, want := g.expr(4)
		if got := evaluate(t, expr, e, withCalls("view", "pdb b 3", "edit")); got != want {
			t.Errorf("%s (resolved known: %t, reward known: %t): %s, want %s", expr, judged, rewarded, got, want)
		}
	})
}
