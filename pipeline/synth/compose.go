package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/mutate"
)

// singlesPerComposed is the number of single bugs for each composed bug.
const singlesPerComposed = 4

// compose combines valid single mutations of one function, of functions that call each
// other, or of one file. Most combinations have two parts, some three or four.
func (s *repoState) compose() []candidate {
	var valid []mutate.Site
	singles := 0
	for _, c := range s.drawn {
		if c.Kind != KindSingle {
			continue
		}
		singles++
		if t := s.trials[c.Key]; t != nil && t.Outcome == Valid {
			valid = append(valid, c.Sites[0])
		}
	}
	want := max(singles/singlesPerComposed, 1)
	three, four := want*2/7, want/7
	var out []candidate
	for parts, n := range map[int]int{2: want - three - four, 3: three, 4: four} {
		for _, c := range mutate.Compose(mutate.ComposeSpec{Sites: valid, Parts: parts, N: n, Seed: uint64(s.seed), Calls: s.calls}) {
			out = append(out, composedCandidate(c.Sites))
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(len(a.Sites)-len(b.Sites), cmp.Compare(s.drawKey(a.Key), s.drawKey(b.Key)))
	})
	return out
}

func composedCandidate(parts []mutate.Site) candidate {
	var ids []string
	for _, p := range parts {
		ids = append(ids, p.File+":"+p.ID)
	}
	return candidate{Key: KindComposed + ":" + strings.Join(ids, "+"), Kind: KindComposed, Sites: parts}
}

// checkPartsNeeded refuses a composed bug if two or more of its parts, without the others,
// break no test: fixing only some parts would then look like a fix. Every single part is
// known to be valid by itself.
func (w *worker) checkPartsNeeded(ctx context.Context, s *repoState, c candidate, t *Trial) error {
	all, affected := 1<<len(c.Sites)-1, s.affectedTests(t)
	for set := 1; set < all; set++ {
		var remaining []mutate.Site
		for i, site := range c.Sites {
			if set&(1<<i) != 0 {
				remaining = append(remaining, site)
			}
		}
		if len(remaining) < 2 {
			continue
		}
		m, err := w.bench.mutator.Apply(ctx, remaining)
		if err != nil {
			return fmt.Errorf("applying some parts of a composed bug: %w", err)
		}
		files, err := s.changedFiles(string(m.Patch))
		if err != nil {
			return err
		}
		r, err := w.runBounded(ctx, s, firstSeed, request{Files: files, Only: affected})
		if err != nil {
			return err
		}
		if len(nonPassingOf(affected, r)) == 0 {
			t.Outcome, t.Reason = Refused, "parts of it undo each other"
			return nil
		}
	}
	return nil
}
