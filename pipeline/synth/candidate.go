package synth

import (
	"slices"

	"github.com/tracesmith/tracesmith/env/mutate"
)

// candidate is a possible bug: one or more mutations, a commit to revert, or a function
// for a model to rewrite.
type candidate struct {
	Key    string         `json:"key"`
	Kind   string         `json:"kind"`
	Sites  []mutate.Site  `json:"sites,omitempty"`
	Commit string         `json:"commit,omitempty"`
	Target *mutate.Target `json:"target,omitempty"`
}

func singleCandidate(site mutate.Site) candidate {
	return candidate{Key: KindSingle + ":" + site.File + ":" + site.ID, Kind: KindSingle, Sites: []mutate.Site{site}}
}

// checkOperators returns an OperatorError if a requested operator does not exist.
func checkOperators(requested []string, all []mutate.Operator) error {
	var ids []string
	for _, op := range all {
		ids = append(ids, op.ID)
	}
	for _, id := range requested {
		if !slices.Contains(ids, id) {
			return &OperatorError{id, ids}
		}
	}
	return nil
}

// lineRange returns the numbers from first to last, or only the first 201 of them.
func lineRange(first, last int) []int {
	var out []int
	for n := first; n <= min(last, first+200); n++ {
		out = append(out, n)
	}
	return out
}
