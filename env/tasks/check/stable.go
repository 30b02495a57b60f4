package check

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
)

// variant returns the hash seed and the order of the nth rerun. They depend only on seed and n.
func variant(seed int64, n int) verify.Variant {
	source := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	return verify.Variant{
		HashSeed: fmt.Sprint(source.Uint32()), // PYTHONHASHSEED is a number of 32 bits
		Shuffle:  1 + source.Int64N(1<<53-1),  // exact in JSON; 0 would be no shuffling
	}
}

// describe returns the conditions of a run, for reports: "as it is" means the default hash seed and order.
func describe(how verify.Variant) string {
	switch {
	case how.Only != nil:
		return "alone"
	case how.Shuffle == 0:
		return "as it is"
	}
	return fmt.Sprintf("hash seed %s, order %d", how.HashSeed, how.Shuffle)
}

// side is a state of the repository, without the fix or with it, that must always get the same verdicts.
type side struct {
	name  string // "before" or "after" the fix
	patch []byte
	first TestVerdicts // verdicts of the first run
}

func (c *checker) sides() []side {
	out := []side{{"before", nil, c.rep.Before}}
	if c.task.GoldPatch != "" {
		out = append(out, side{"after", []byte(c.task.GoldPatch), c.rep.After})
	}
	return out
}

// checkStability runs the tests of both sides again, until each side has run Runs times or a verdict differs.
func (c *checker) checkStability(ctx context.Context) (finding, error) {
	for c.rep.Runs = 1; c.rep.Runs < c.Runs; c.rep.Runs++ {
		for _, s := range c.sides() {
			found, err := c.rerun(ctx, s, variant(c.Seed, c.rep.Runs), s.first)
			if err != nil || found.status != "" {
				return found, err
			}
		}
	}
	return finding{}, nil
}

// checkAlone runs each listed test by itself, if that is cheap: all of them with the fix, where they must pass, and
// those that show the bug also without it.
func (c *checker) checkAlone(ctx context.Context) (finding, error) {
	type run struct {
		side
		id   string
		only []string
	}
	sides := c.sides()
	var runs []run
	for _, id := range slices.Sorted(maps.Keys(c.rep.Before)) {
		only := c.expanded[id]
		if only == nil {
			only = []string{id} // the test did not run before the fix
		}
		runs = append(runs, run{sides[len(sides)-1], id, only})
		if len(sides) > 1 && slices.Contains(c.spec.FailToPass, id) {
			runs = append(runs, run{sides[0], id, only})
		}
	}
	cost := time.Duration(c.rep.TestWall * float64(len(runs)) * float64(time.Second))
	if len(c.rep.Before) < 2 || cost > c.Isolated {
		return finding{}, nil
	}
	for _, r := range runs {
		found, err := c.rerun(ctx, r.side, verify.Variant{Only: r.only}, TestVerdicts{r.id: r.first[r.id]})
		if err != nil || found.status != "" {
			return found, err
		}
	}
	c.rep.Isolated = len(c.rep.Before)
	return finding{}, nil
}

// rerun runs the tests of a side again and compares their verdicts with the expected ones.
func (c *checker) rerun(ctx context.Context, s side, how verify.Variant, want TestVerdicts) (finding, error) {
	verdict, run, err := c.v.VerifyVariant(ctx, c.task, c.tree, s.patch, "", how)
	if err != nil {
		return finding{}, err
	}
	if found := c.runFinding(verdict, run); found.status != "" {
		found.reason += " (" + s.name + ", " + describe(how) + ")"
		return found, nil
	}
	got := c.testVerdicts(run)
	for id := range got {
		if _, wanted := want[id]; !wanted {
			delete(got, id)
		}
	}
	changed := differing(want, got)
	if changed == nil {
		return finding{}, nil
	}
	c.rep.Flake = &Flake{Side: s.name, Tests: changed, Kinds: [2]string{"as it is", describe(how)}, Verdicts: [2]TestVerdicts{want, got}}
	id := changed[0]
	return finding{Flaky, fmt.Sprintf("%s of %d tests change, the first is %s: %s as it is, %s with %s (%s the fix)",
		fmt.Sprint(len(changed)), len(want), id, want[id], got[id], describe(how), s.name)}, nil
}

// differing returns the tests on which two runs disagree. A failed test, one with an error and one that did not run
// count as the same verdict.
func differing(a, b TestVerdicts) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(a)) {
		if verdictWord(a[id]) != verdictWord(b[id]) {
			out = append(out, id)
		}
	}
	return out
}

func verdictWord(status string) string {
	if strings.Contains(" failed error missing ", " "+status+" ") {
		return "fails"
	}
	return status
}
