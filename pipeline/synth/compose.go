package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/mutate"
)

// composedShare is how many single bugs there are for each composed one.
const composedShare = 4

// compose puts valid single mutations of one file together, those of the same
// function first, by the seed.
func (s *state) compose() []candidate {
	valid, singles := map[string]mutate.Site{}, 0
	for _, c := range s.drawn {
		if c.Kind == KindSingle {
			singles++
		}
		if t := s.trials[c.Key]; c.Kind == KindSingle && t != nil && t.Outcome == Valid {
			valid[c.Key] = c.Sites[0]
		}
	}
	keys := sorted(valid)
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(s.lot(a), s.lot(b)) })
	var out []candidate
	seen := map[string]bool{}
	for _, key := range keys {
		if len(out) >= max(singles/composedShare, 1) {
			break
		}
		parts := []mutate.Site{valid[key]}
		want := 2 + int(s.lot("size " + key)[0]%4)/2 // 2 or 3, and
		if s.lot("more " + key)[0]%4 == 0 {
			want++ // up to 4
		}
		partners := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return valid[k].File != parts[0].File })
		slices.SortStableFunc(partners, func(a, b string) int {
			return cmp.Or(cmp.Compare(apart(valid[a], parts[0]), apart(valid[b], parts[0])), cmp.Compare(s.lot(key+a), s.lot(key+b)))
		})
		for _, k := range partners {
			if len(parts) < want && !slices.ContainsFunc(parts, func(p mutate.Site) bool { return overlap(p, valid[k]) }) {
				parts = append(parts, valid[k])
			}
		}
		slices.SortFunc(parts, func(a, b mutate.Site) int { return cmp.Compare(a.Start, b.Start) })
		if c := composed(parts); len(parts) > 1 && !seen[c.Key] {
			seen[c.Key] = true
			out = append(out, c)
		}
	}
	return out
}

func apart(a, b mutate.Site) int {
	if a.Func == b.Func {
		return 0
	}
	return 1
}

// overlap is generous: neighbours on one line are too near to be two bugs.
func overlap(a, b mutate.Site) bool { return a.Line <= b.EndLine && b.Line <= a.EndLine }

func composed(parts []mutate.Site) candidate {
	var ids []string
	for _, p := range parts {
		ids = append(ids, p.ID)
	}
	return candidate{Key: KindComposed + ":" + parts[0].File + ":" + strings.Join(ids, "+"), Kind: KindComposed, Sites: parts}
}

// needed says whether each part of a composed bug must be mended: whatever else
// is mended, its tests fail. Single parts have shown that by themselves.
func (w *worker) needed(ctx context.Context, s *state, c candidate, t *Trial) error {
	all := 1<<len(c.Sites) - 1
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
		m, err := w.mutator.Apply(ctx, left)
		if err != nil {
			return fmt.Errorf("applying a part: %w", err)
		}
		files, err := s.changed(string(m.Patch))
		if err != nil {
			return err
		}
		r, err := w.bench.run(ctx, firstSeed, request{Files: files, Only: s.kept, Timeout: timeout(s.seconds)})
		if err != nil {
			return err
		}
		if len(vectorOf(s.kept, r)) == 0 {
			t.Outcome, t.Reason = Refused, "parts of it undo each other"
			return nil
		}
	}
	return nil
}
