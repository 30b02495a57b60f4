package synth

import (
	"fmt"
	"maps"
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

// limits returns the caps that would count a mutation, as far as its site tells.
func (c candidate) limits(caps Caps) map[string]int {
	out := map[string]int{}
	for _, site := range c.Sites {
		maps.Copy(out, caps.limits([]string{site.File + "::" + site.Func}, []string{site.Operator}, []string{fmt.Sprintf("%s:%d", site.File, site.Line)}, []string{site.File}))
	}
	return out
}

// spread moves sites back that share their line with earlier ones, because caps admit few bugs of one line.
func spread(sites []mutate.Site, caps Caps) []mutate.Site {
	if caps.Line == 0 {
		return sites
	}
	var ranks [][]mutate.Site // by the number of earlier sites of the line, in units of the cap
	seen := map[string]int{}
	for _, site := range sites {
		line := fmt.Sprintf("%s:%d", site.File, site.Line)
		rank := seen[line] / caps.Line
		seen[line]++
		if rank == len(ranks) {
			ranks = append(ranks, nil)
		}
		ranks[rank] = append(ranks[rank], site)
	}
	return slices.Concat(ranks...)
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
