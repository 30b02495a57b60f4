package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/mutate"
)

// composedShare is the number of single bugs per composed one.
const composedShare = 4

// compose combines valid single mutations of one function, of functions that call each
// other, or of one file; mostly two, at most four.
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
	want := max(singles/composedShare, 1)
	three, four := want*2/7, want/7
	var out []candidate
	for parts, n := range map[int]int{2: want - three - four, 3: three, 4: four} {
		for _, c := range mutate.Compose(mutate.ComposeSpec{Sites: valid, Parts: parts, N: n, Seed: uint64(s.seed), Calls: s.calls}) {
			out = append(out, composed(c.Sites))
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(len(a.Sites)-len(b.Sites), cmp.Compare(s.drawKey(a.Key), s.drawKey(b.Key)))
	})
	return out
}

func composed(parts []mutate.Site) candidate {
	var ids []string
	for _, p := range parts {
		ids = append(ids, p.File+":"+p.ID)
	}
	return candidate{Key: KindComposed + ":" + strings.Join(ids, "+"), Kind: KindComposed, Sites: parts}
}

// checkPartsNeeded checks that each part of a composed bug must be fixed: with all other
// parts fixed, tests still fail.
func (w *worker) checkPartsNeeded(ctx context.Context, s *repoState, c candidate, t *Trial) error {
	all, near := 1<<len(c.Sites)-1, s.near(t)
	for set := 1; set < all; set++ {
		var left []mutate.Site
		for i, site := range c.Sites {
			if set&(1<<i) != 0 {
				left = append(left, site)
			}
		}
		if len(left) < 2 {
			continue
		}
		m, err := w.bench.mutator.Apply(ctx, left)
		if err != nil {
			return fmt.Errorf("applying a part: %w", err)
		}
		files, err := s.changed(string(m.Patch))
		if err != nil {
			return err
		}
		r, err := w.runBounded(ctx, s, firstSeed, request{Files: files, Only: near})
		if err != nil {
			return err
		}
		if len(vectorOf(near, r)) == 0 {
			t.Outcome, t.Reason = Refused, "parts of it undo each other"
			return nil
		}
	}
	return nil
}
