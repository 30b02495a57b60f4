package mutate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// weights are the weights of the operators in a sample, 1 if not listed. The listed operators make
// subtle bugs: the code looks right, and the symptom is often far from the cause.
var weights = map[string]float64{
	"f1": 3, "f3": 3, "m1": 3, "m2": 3, "m3": 3, "o1": 3, "r1": 3, "r3": 3,
	"a5": 2, "f2": 2, "i2": 2, "i3": 2, "k2": 2, "k3": 2, "k4": 2,
}

// Sample chooses up to n sites at random. How often an operator occurs depends on its weight and not
// on its number of sites, so that rare operators are not lost. The result depends only on the seed
// and the set of sites.
func Sample(sites []Site, n int, seed uint64) []Site {
	count := map[string]int{}
	for _, s := range sites {
		count[s.Operator]++
	}
	keys := make(map[string]float64, len(sites))
	for _, s := range sites {
		weight := max(weights[s.Operator], 1)
		// Weighted sampling without replacement: each site gets an exponentially distributed
		// key with its weight as the rate, and the n smallest keys win.
		keys[s.ID] = -math.Log(uniform(seed, s.ID)) * float64(count[s.Operator]) / weight
	}
	order := slices.Clone(sites)
	slices.SortFunc(order, func(a, b Site) int {
		return cmp.Or(cmp.Compare(keys[a.ID], keys[b.ID]), compare(a, b))
	})
	return order[:min(n, len(order))]
}

// uniform maps a seed and a name to a number in (0, 1].
func uniform(seed uint64, name string) float64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(seed, 10) + "\x00" + name))
	return (float64(binary.BigEndian.Uint64(sum[:8])>>11) + 1) / (1 << 53)
}

// compare orders sites by position.
func compare(a, b Site) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID))
}
