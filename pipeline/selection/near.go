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

// signature is the value of column minhash_b64.
type signature [128]uint32

func readSignature(text string) (signature, bool) {
	var s signature
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 4*len(s) {
		return s, false
	}
	for i := range s {
		s[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return s, true
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

// nearIndex finds near duplicates among signatures. It compares only signatures that
// share a band: two signatures that differ in at most d positions have at least one of
// d+1 bands in common.
type nearIndex struct {
	least int // positions that must be equal
	bands int
	seen  map[string][]*signature
}

func newNearIndex(threshold float64) *nearIndex {
	least := int(math.Ceil(threshold*float64(len(signature{})) - 1e-9))
	return &nearIndex{least: least, bands: len(signature{}) - least + 1, seen: map[string][]*signature{}}
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
			if s.equals(o) >= a.least {
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

// near rejects episodes whose similarity to a kept one reaches the threshold. An
// episode that is too short for a signature is never a duplicate.
func (s *application) near(threshold float64) {
	a := newNearIndex(threshold)
	s.filter("dedup:near", fmt.Sprintf("MinHash similarity to every one before below %g", threshold), func(c *candidate) bool {
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
	step := schemas.FunnelStep{Predicate: "near", Expr: fmt.Sprintf("MinHash similarity to every one before below %g", threshold), In: len(s.alive)}
	a := newNearIndex(threshold)
	for _, c := range s.alive {
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

// computeSignatures computes missing signatures from the steps.
func (s *application) computeSignatures(ctx context.Context, src Source) error {
	lack := map[string]*candidate{}
	for _, c := range s.alive {
		if c.minhash == "" {
			lack[c.out.EpisodeID] = c
		}
	}
	if len(lack) == 0 {
		return nil
	}
	for e, err := range src(ctx, true) {
		if err != nil {
			return err
		}
		if c := lack[e.Row.EpisodeID]; c != nil {
			c.minhash = metrics.MinHash(e.Steps)
		}
	}
	return nil
}
