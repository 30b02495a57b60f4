package metrics

import (
	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// MinHash returns the signature of the agent's messages and calls: 128 minima of 32
// bits, little endian, in base64. The share of equal minima of two signatures
// estimates the Jaccard similarity of their sets of 5-word shingles. It returns "" for
// fewer than five words.
func MinHash(rows []schemas.StepRow) string {
	var text []byte
	for _, r := range rows {
		if r.Source != "agent" {
			continue
		}
		for _, part := range []*string{&r.Message, r.ToolName, r.ArgumentsJSON} {
			if part != nil {
				text = append(append(text, *part...), '\n')
			}
		}
	}
	s, known := overlap.Sign(overlap.Words(text[:min(len(text), overlap.MaxText)]))
	if !known {
		return ""
	}
	return s.String()
}

// Similar estimates the similarity of two episodes by their signatures, 0 to 1. ok is
// false if one of them is not a signature.
func Similar(a, b string) (float64, bool) {
	x, okX := overlap.ParseSignature(a)
	y, okY := overlap.ParseSignature(b)
	if !okX || !okY {
		return 0, false
	}
	return x.Similar(y), true
}
