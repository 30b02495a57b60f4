package metrics

import (
	"fmt"
	"math"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// attempts returns n tasks with one attempt each, the first of which are resolved.
func attempts(resolved, n int) map[string]Attempts {
	tasks := map[string]Attempts{}
	for i := range n {
		a := Attempts{Verified: 1}
		if i < resolved {
			a.Resolved = 1
		}
		tasks[fmt.Sprint(i)] = a
	}
	return tasks
}

func near(a, b float64) bool { return math.Abs(a-b) < 0.00006 }

// The examples are those of Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3.
func TestRateHasTheIntervalOfWilson(t *testing.T) {
	for _, c := range []struct {
		resolved, n int
		low, high   float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		r := RateOf(attempts(c.resolved, c.n))
		if !near(*r.Low, c.low) || !near(*r.High, c.high) || r.Tasks != c.n || !near(*r.Rate, float64(c.resolved)/float64(c.n)) {
			t.Errorf("%d/%d: %.4f, %.4f to %.4f, want %.4f to %.4f", c.resolved, c.n, *r.Rate, *r.Low, *r.High, c.low, c.high)
		}
	}
	if r := RateOf(map[string]Attempts{"a": {}}); r.Rate != nil || r.Low != nil || r.Tasks != 0 {
		t.Errorf("no verdict: %+v", r)
	}
}

// Attempts that only repeat each other say no more than one of them.
func TestRepeatedAttemptsDoNotNarrowTheInterval(t *testing.T) {
	once, repeated, none := attempts(12, 40), map[string]Attempts{}, map[string]Attempts{}
	for task, a := range once {
		repeated[task] = Attempts{a.Resolved * 16, 16}
		none[task] = Attempts{0, 16}
	}
	a, b := RateOf(once), RateOf(repeated)
	if *b.Low > *a.Low || *b.High < *a.High || *b.High-*b.Low > 1.05*(*a.High-*a.Low) {
		t.Errorf("once %.3f to %.3f, repeated %.3f to %.3f", *a.Low, *a.High, *b.Low, *b.High)
	}
	if got, want := RateOf(none), RateOf(attempts(0, 40)); *got.High != *want.High {
		t.Errorf("never resolved: up to %.3f, want %.3f", *got.High, *want.High)
	}
}

// The examples are those of Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 10.
func TestDifferenceOfIndependentRates(t *testing.T) {
	for _, c := range []struct {
		b, nb, a, na int
		low, high    float64
	}{{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {6, 7, 2, 7, 0.0582, 0.8062}, {5, 56, 0, 29, -0.0381, 0.1926}} {
		a := map[string]Attempts{} // other tasks than those of b
		for task, attempts := range attempts(c.a, c.na) {
			a["other "+task] = attempts
		}
		d := DifferenceOf(a, attempts(c.b, c.nb))
		if !near(*d.Low, c.low) || !near(*d.High, c.high) {
			t.Errorf("%d/%d - %d/%d: %.4f, %.4f to %.4f, want %.4f to %.4f", c.b, c.nb, c.a, c.na, *d.Difference, *d.Low, *d.High, c.low, c.high)
		}
		if back := DifferenceOf(attempts(c.b, c.nb), a); *back.Low != -*d.High || *back.High != -*d.Low {
			t.Errorf("the other way round: %.4f to %.4f", *back.Low, *back.High)
		}
	}
	if d := DifferenceOf(attempts(1, 2), nil); d.Difference != nil || d.Low != nil {
		t.Errorf("no episodes in b: %+v", d)
	}
}

// Two groups that resolve mostly the same tasks differ less by chance than two that do not.
func TestDifferenceOnTheSameTasksIsPaired(t *testing.T) {
	a, same, opposite := attempts(20, 40), attempts(22, 40), map[string]Attempts{}
	for i := range 40 {
		opposite[fmt.Sprint(39-i)] = same[fmt.Sprint(i)]
	}
	paired, unlike := DifferenceOf(a, same), DifferenceOf(a, opposite)
	if !near(*paired.Difference, 0.05) || !near(*unlike.Difference, 0.05) || *paired.High > 0.2 || *unlike.High < 0.3 {
		t.Errorf("paired %.3f to %.3f, unlike %.3f to %.3f", *paired.Low, *paired.High, *unlike.Low, *unlike.High)
	}
	// One task that only one group has, or for which only one has a verdict, makes the groups independent.
	same["40"], a["40"] = Attempts{1, 1}, Attempts{}
	for _, d := range []Difference{DifferenceOf(a, same), DifferenceOf(same, a)} {
		if !(*d.Low < -0.12 && *d.High > 0.12) {
			t.Errorf("not the same tasks: %.3f to %.3f", *d.Low, *d.High)
		}
	}
}

func TestSignTest(t *testing.T) {
	for _, c := range []struct {
		only, other int
		p           float64
	}{{0, 0, 1}, {1, 7, 0.0703125}, {7, 1, 0.0703125}, {0, 5, 0.0625}, {4, 4, 1}, {300, 500, 1.5263e-12}} {
		if got := SignTest(c.only, c.other); math.Abs(got-c.p) > 1e-3*c.p {
			t.Errorf("%d and %d: %g, want %g", c.only, c.other, got, c.p)
		}
	}
}

func TestGroupSummary(t *testing.T) {
	var g Group
	if s := g.Summary(); s.Rate.Rate != nil || s.CostUSD != nil || s.Tokens != nil {
		t.Errorf("no episodes: %+v", s)
	}
	g.Add(&schemas.EpisodeRow{InstanceID: "a", Resolved: new(true), CostUSD: new(0.25), PromptTokens: new(int64(10)), CompletionTokens: new(int64(2))})
	g.Add(&schemas.EpisodeRow{InstanceID: "a", Resolved: new(false), CostUSD: new(0.5), PromptTokens: new(int64(10)), CompletionTokens: new(int64(2))})
	g.Add(&schemas.EpisodeRow{InstanceID: "b", Resolved: new(true), GoldUsed: true, CostUSD: new(0.25), PromptTokens: new(int64(10)), CompletionTokens: new(int64(2))})
	s := g.Summary()
	if s.Episodes != 3 || s.Tasks != 2 || s.Rate.Resolved != 2 || s.ResolvedGold != 1 || *s.CostUSD != 1 || *s.CostPerResolved != 0.5 || *s.Tokens != 36 {
		t.Errorf("%+v", s)
	}
	// The cost of an import is unknown, and an unverified episode does not change the rate.
	g.Add(&schemas.EpisodeRow{InstanceID: "c"})
	if s := g.Summary(); s.Tasks != 3 || s.Rate.Verified != 3 || s.CostUSD != nil || s.CostPerResolved != nil || s.Tokens != nil {
		t.Errorf("%+v", s)
	}
}
