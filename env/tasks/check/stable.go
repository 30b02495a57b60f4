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

// variant returns the hash seed and the order of the n-th rerun, which depend on the seed.
func variant(seed int64, n int) verify.Variant {
	source := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	return verify.Variant{
		HashSeed: fmt.Sprint(source.Uint32()), // PYTHONHASHSEED is a number of 32 bits
		Shuffle:  1 + source.Int64N(1<<53-1),  // exact in JSON; 0 would be no shuffling
	}
}

func describe(how verify.Variant) string {
	switch {
	case how.Only != nil:
		return "alone"
	case how.Shuffle == 0:
		return "as it is"
	}
	return fmt.Sprintf("hash seed %s, order %d", how.HashSeed, how.Shuffle)
}

// side is one state of the repository that must always get the same verdicts.
type side struct {
	name  string
	patch []byte
	first Vector
}

func (c *checker) sides() []side {
	out := []side{{"before", nil, c.rep.Before}}
	if c.task.GoldPatch != "" {
		out = append(out, side{"after", []byte(c.task.GoldPatch), c.rep.After})
	}
	return out
}

// stable repeats both sides until each has run Runs times or one has two different verdicts.
func (c *checker) stable(ctx context.Context) (finding, error) {
	for c.rep.Runs = 1; c.rep.Runs < c.Runs; c.rep.Runs++ {
		for _, s := range c.sides() {
			found, err := c.again(ctx, s, variant(c.Seed, c.rep.Runs), s.first)
			if err != nil || found.status != "" {
				return found, err
			}
		}
	}
	return finding{}, nil
}

// alone runs each listed test by itself, if that is cheap: all of them on the last side, where they
// must pass, and those that show the bug also on the first.
func (c *checker) alone(ctx context.Context) (finding, error) {
	type run struct {
		side
		id   string
		only []string
	}
	sides := c.sides()
	var runs []run
	for _, id := range slices.Sorted(maps.Keys(c.rep.Before)) {
		only := c.full[id]
		if only == nil {
			only = []string{id} // no such test ran before the fix
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
		found, err := c.again(ctx, r.side, verify.Variant{Only: r.only}, Vector{r.id: r.first[r.id]})
		if err != nil || found.status != "" {
			return found, err
		}
	}
	c.rep.Isolated = len(c.rep.Before)
	return finding{}, nil
}

// again runs a side once more and compares the result with the expected vector.
func (c *checker) again(ctx context.Context, s side, how verify.Variant, want Vector) (finding, error) {
	verdict, run, err := c.v.Try(ctx, c.task, c.tree, s.patch, "", how)
	if err != nil {
		return finding{}, err
	}
	if found := c.whole(verdict, run); found.status != "" {
		found.reason += " (" + s.name + ", " + describe(how) + ")"
		return found, nil
	}
	got := c.vector(run)
	for id := range got {
		if _, asked := want[id]; !asked {
			delete(got, id)
		}
	}
	changed := differ(want, got)
	if changed == nil {
		return finding{}, nil
	}
	c.rep.Flake = &Flake{Side: s.name, Tests: changed, Kinds: [2]string{"as it is", describe(how)}, Vectors: [2]Vector{want, got}}
	id := changed[0]
	return finding{Flaky, fmt.Sprintf("%s of %d tests change, the first is %s: %s as it is, %s with %s (%s the fix)",
		fmt.Sprint(len(changed)), len(want), id, want[id], got[id], describe(how), s.name)}, nil
}

// differ lists the tests on which two vectors disagree. A failed assertion, another exception and a
// test that did not run because of one are the same verdict.
func differ(a, b Vector) []string {
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
