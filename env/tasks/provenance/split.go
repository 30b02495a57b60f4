package provenance

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Salt and Shares are the default parameters of splits.
const Salt = "tracesmith"

// Shares are the shares of Splits, in the same order.
var Shares = [3]float64{0.96, 0.02, 0.02}

// SplitOf is the split of a task's rows: the one that "tasks split" gave it, or test for
// repositories of public benchmarks, or else the split of its upstream.
func SplitOf(t schemas.Task, salt string) string {
	name := Upstream(t)
	switch {
	case t.Origin != nil && slices.Contains(Splits, t.Origin.Split):
		return t.Origin.Split
	case Benchmark(name) != "":
		return "test"
	}
	split, _ := Split(name, salt, Shares) // they are valid
	return split
}

// Splits lists the names of splits, in the order of ratios.
var Splits = []string{"train", "validation", "test"}

// Split puts a repository into a split by the hash of its canonical name and the salt, so
// that new repositories never move old ones. Ratios are in the order of Splits and must add
// up to 1.
func Split(repo, salt string, ratios [3]float64) (string, error) {
	if sum := ratios[0] + ratios[1] + ratios[2]; math.Abs(sum-1) > 1e-9 || slices.Min(ratios[:]) < 0 {
		return "", fmt.Errorf("the shares %g, %g and %g must be at least 0 and add up to 1", ratios[0], ratios[1], ratios[2])
	}
	sum := sha256.Sum256([]byte(salt + "\x00" + Canonical(repo)))
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	split := ""
	for i, share := range ratios {
		if share == 0 {
			continue
		}
		split = Splits[i]
		if at < share {
			break
		}
		at -= share
	}
	return split, nil
}
