package selection

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// nearIndex finds near duplicates among signatures. It divides the positions into bands and
// compares only signatures that are equal in a band. That finds all near duplicates, because
// signatures that differ in at most d positions are equal in at least one of d+1 bands.
type nearIndex struct {
	threshold float64                         // smallest similarity of near duplicates
	bands     int                             // number of bands
	seen      map[string][]*overlap.Signature // by the key of a band
}

// newNearIndex returns an index for near duplicates whose similarity is at least threshold.
func newNearIndex(threshold float64) *nearIndex {
	size := len(overlap.Signature{})
	minEqual := int(math.Ceil(threshold*float64(size) - 1e-9))
	return &nearIndex{threshold: threshold, bands: size - minEqual + 1, seen: map[string][]*overlap.Signature{}}
}

// band returns the key of the k-th band of positions.
func (a *nearIndex) band(s *overlap.Signature, k int) string {
	n := len(s)
	key := binary.LittleEndian.AppendUint32(nil, uint32(k))
	for _, v := range s[k*n/a.bands : (k+1)*n/a.bands] {
		key = binary.LittleEndian.AppendUint32(key, v)
	}
	return string(key)
}

// has reports whether a near duplicate of s was added before.
func (a *nearIndex) has(s *overlap.Signature) bool {
	for k := range a.bands {
		for _, o := range a.seen[a.band(s, k)] {
			if s.Similar(*o) >= a.threshold {
				return true
			}
		}
	}
	return false
}

func (a *nearIndex) add(s *overlap.Signature) {
	for k := range a.bands {
		key := a.band(s, k)
		a.seen[key] = append(a.seen[key], s)
	}
}

// dropNear rejects episodes whose similarity to an earlier kept episode reaches the threshold.
// An episode without a signature, because it is too short, is never a duplicate.
func (s *application) dropNear(threshold float64) {
	a := newNearIndex(threshold)
	s.filter("dedup:near", fmt.Sprintf("MinHash similarity to every earlier episode below %g", threshold), func(c *candidate) bool {
		sig, ok := overlap.ParseSignature(c.minhash)
		if !ok {
			return true
		}
		if a.has(&sig) {
			return false
		}
		a.add(&sig)
		return true
	})
}

// reportNear counts the near duplicates among the kept episodes without rejecting them.
func (s *application) reportNear(threshold float64) schemas.FunnelStep {
	step := schemas.FunnelStep{Predicate: "near", Expr: fmt.Sprintf("MinHash similarity to every earlier episode below %g", threshold), In: len(s.remaining)}
	a := newNearIndex(threshold)
	for _, c := range s.remaining {
		sig, ok := overlap.ParseSignature(c.minhash)
		switch {
		case !ok:
			step.Unknown++
		case !a.has(&sig):
			a.add(&sig)
			step.Out++
		}
	}
	return step
}

// computeSignatures computes the signatures of candidates whose minhash_b64 is null, from the
// steps.
func (s *application) computeSignatures(ctx context.Context, src Source) error {
	missing := map[string]*candidate{}
	for _, c := range s.remaining {
		if c.minhash == "" {
			missing[c.out.EpisodeID] = c
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for e, err := range src(ctx, true) {
		if err != nil {
			return err
		}
		if c := missing[e.Row.EpisodeID]; c != nil {
			c.minhash = metrics.MinHash(e.Steps)
		}
	}
	return nil
}
