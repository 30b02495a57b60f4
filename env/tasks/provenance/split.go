package provenance

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Salt is the default salt of Split.
const Salt = "tracesmith"

// Shares are the default ratios of Split.
var Shares = [3]float64{0.96, 0.02, 0.02}

// SplitOf returns the split of a task's rows: the split that "tasks split" assigned, or test for repositories of public
// benchmarks, or else the split of its upstream repository.
func SplitOf(t schemas.Task, salt string) string {
	name := Upstream(t)
	switch {
	case t.Origin != nil && slices.Contains(Splits, t.Origin.Split):
		return t.Origin.Split
	case Benchmark(name) != "":
		return "test"
	}
	split, _ := Split(name, salt, Shares) // the default shares are valid
	return split
}

// Splits lists the names of the splits.
var Splits = []string{"train", "validation", "test"}

// Split returns the split of a repository. It depends only on the repository's canonical name, the salt and the ratios,
// so adding repositories never moves others to another split. The ratios are in the order of Splits and must add up
// to 1.
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
