package selection

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// signature is a decoded value of the column minhash_b64.
type signature [128]uint32

// readSignature decodes a value of minhash_b64. ok is false if it is invalid.
func readSignature(text string) (sig signature, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 4*len(sig) {
		return sig, false
	}
	for i := range sig {
		sig[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return sig, true
}

// equals counts the positions at which two signatures are equal.
func (s *signature) equals(o *signature) (n int) {
	for i := range s {
		if s[i] == o[i] {
			n++
		}
	}
	return n
}

// nearIndex finds near duplicates among signatures. It divides the positions into bands and
// compares only signatures that are equal in a band. That finds all near duplicates, because
// signatures that differ in at most d positions are equal in at least one of d+1 bands.
type nearIndex struct {
	minEqual int                     // number of positions that must be equal
	bands    int                     // number of bands
	seen     map[string][]*signature // by the key of a band
}

// newNearIndex returns an index for near duplicates whose similarity is at least threshold.
func newNearIndex(threshold float64) *nearIndex {
	minEqual := int(math.Ceil(threshold*float64(len(signature{})) - 1e-9))
	return &nearIndex{minEqual: minEqual, bands: len(signature{}) - minEqual + 1, seen: map[string][]*signature{}}
}

// band returns the key of the k-th band of positions.
func (a *nearIndex) band(s *signature, k int) string {
	n := len(s)
	key := binary.LittleEndian.AppendUint32(nil, uint32(k))
	for _, v := range s[k*n/a.bands : (k+1)*n/a.bands] {
		key = binary.LittleEndian.AppendUint32(key, v)
	}
	return string(key)
}

// has reports whether a near duplicate of s was added before.
func (a *nearIndex) has(s *signature) bool {
	for k := range a.bands {
		for _, o := range a.seen[a.band(s, k)] {
			if s.equals(o) >= a.minEqual {
				return true
			}
		}
	}
	return false
}

func (a *nearIndex) add(s *signature) {
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
		sig, ok := readSignature(c.minhash)
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
		sig, ok := readSignature(c.minhash)
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
