package mutate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// Caps bound how many bugs come from one place; 0 is unlimited.
type Caps struct {
	Func         int // of one function
	FuncOperator int // of one operator in one function
	File         int
}

// DefaultCaps keep a set of bugs diverse.
var DefaultCaps = Caps{Func: 3, FuncOperator: 2, File: 25}

// preferred operators separate cause and symptom; Sample chooses them more often.
var preferred = map[string]float64{"f3": 3, "m1": 3, "m2": 3, "m3": 3, "d2": 3, "d5": 3, "r5": 3, "k2": 2}

// Sample chooses up to n sites. An operator's share does not depend on its number of sites, so that
// rare operators occur; preferred operators have a larger share. The choice and its order depend on
// the seed and the set of sites alone.
func Sample(sites []Site, n int, seed uint64, caps Caps) []Site {
	count := map[string]int{}
	for _, s := range sites {
		count[s.Operator]++
	}
	keys := make(map[string]float64, len(sites))
	for _, s := range sites {
		weight := max(preferred[s.Operator], 1)
		// Each site waits for an exponential time; the first ones win.
		keys[s.ID] = -math.Log(uniform(seed, s.ID)) * float64(count[s.Operator]) / weight
	}
	order := slices.Clone(sites)
	slices.SortFunc(order, func(a, b Site) int {
		return cmp.Or(cmp.Compare(keys[a.ID], keys[b.ID]), compare(a, b))
	})
	taken := newTally(caps)
	var out []Site
	for _, s := range order {
		if len(out) == n {
			break
		}
		if taken.take(s) {
			out = append(out, s)
		}
	}
	return out
}

type tally struct {
	caps  Caps
	count map[[3]string]int
}

func newTally(caps Caps) tally { return tally{caps, map[[3]string]int{}} }

// take counts a site if every cap has room for it.
func (t tally) take(s Site) bool {
	keys := [][3]string{{s.File}, {s.File, s.Func, ""}, {s.File, s.Func, s.Operator}}
	for i, limit := range []int{t.caps.File, t.caps.Func, t.caps.FuncOperator} {
		if limit > 0 && t.count[keys[i]] >= limit {
			return false
		}
	}
	for _, k := range keys {
		t.count[k]++
	}
	return true
}

// uniform maps a seed and a name to a number in (0, 1].
func uniform(seed uint64, name string) float64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(seed, 10) + "\x00" + name))
	return (float64(binary.BigEndian.Uint64(sum[:8])>>11) + 1) / (1 << 53)
}

// compare orders sites by place.
func compare(a, b Site) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID))
}
