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
	s, ok := overlap.SignatureOf(overlap.Words(text[:min(len(text), overlap.MaxText)]))
	if !ok {
		return ""
	}
	return s.String()
}
