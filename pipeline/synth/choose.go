package synth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// choose marks valid trials that do not become tasks: duplicates, equivalents, those of
// another difficulty, and those beyond a cap. It chooses the rest. The order of planning decides, not the order
// in which the trials finished.
func (s *repoState) choose(cfg Config) {
	var valid []*Trial
	for _, key := range s.order {
		if t := s.trials[key]; t != nil && t.Outcome == Valid {
			valid = append(valid, t)
		}
	}
	bodies, shapes := map[string]string{}, map[string]string{}
	same := map[string]*Trial{}
	for _, t := range valid {
		if other, ok := bodies[t.Body]; ok && t.Body != "" {
			t.Outcome, t.Reason = Duplicate, "the code of "+other
			continue
		}
		bodies[t.Body] = t.Key
		if other, ok := shapes[t.Shape]; ok && t.Shape != "" {
			t.Outcome, t.Reason = Equivalent, "makes the change of "+other+" in a copy of the function"
			continue
		}
		shapes[t.Shape] = t.Key
		alike := t.behaviour(s)
		other := same[alike]
		switch {
		case other == nil:
			same[alike] = t
		case len(t.Patch) < len(other.Patch): // the smallest diff stays
			other.Outcome, other.Reason = Equivalent, "does what "+t.Key+" does"
			same[alike] = t
		default:
			t.Outcome, t.Reason = Equivalent, "does what "+other.Key+" does"
		}
	}
	for _, t := range valid {
		if t.Outcome == Valid && !cfg.wants(t.Difficulty) {
			t.Outcome, t.Reason = OtherDifficulty, "difficulty "+t.Difficulty.Level+", from the fix "+t.Difficulty.GoldLevel
		}
	}
	s.cap(valid, cfg.Caps)
}

// wants reports whether a bug has one of the requested levels of difficulty.
func (c Config) wants(d schemas.Difficulty) bool {
	return (len(c.Difficulty) == 0 || slices.Contains(c.Difficulty, d.Level)) &&
		(len(c.GoldDifficulty) == 0 || slices.Contains(c.GoldDifficulty, d.GoldLevel))
}

// behaviour identifies what a trial does: function, verdicts, first divergence.
func (t *Trial) behaviour(s *repoState) string {
	where := t.Divergence
	if where == "" {
		where = t.Key // not measured, so equivalent to no other
	}
	return strings.Join([]string{strings.Join(t.Funcs, " "), schemas.ShortHash(t.FailToPass), where}, "\x00")
}

// cap applies the caps and chooses the rest.
func (s *repoState) cap(valid []*Trial, bounds Caps) {
	count := map[string]int{}
	// Rarer operators first, so that the caps do not keep only common ones.
	operators := map[string]int{}
	for _, t := range valid {
		operators[strings.Join(t.Operators, "+")]++
	}
	ordered := slices.Clone(valid)
	slices.SortStableFunc(ordered, func(a, b *Trial) int {
		return cmp.Compare(operators[strings.Join(a.Operators, "+")], operators[strings.Join(b.Operators, "+")])
	})
	for _, t := range ordered {
		if t.Outcome != Valid {
			continue
		}
		var caps []string
		limit := map[string]int{}
		add := func(name string, most int) {
			if most > 0 {
				caps, limit[name] = append(caps, name), most
			}
		}
		for _, fn := range t.Funcs {
			add("function "+fn, bounds.Function)
			for _, op := range slices.Compact(slices.Sorted(slices.Values(t.Operators))) {
				add(op+" in "+fn, bounds.Operator)
			}
		}
		for file := range t.Lines {
			add("file "+file, bounds.File)
		}
		slices.Sort(caps)
		if full := slices.IndexFunc(caps, func(c string) bool { return count[c] >= limit[c] }); full >= 0 {
			t.Outcome, t.Reason = Capped, fmt.Sprintf("%d of %s", limit[caps[full]], caps[full])
			continue
		}
		for _, c := range caps {
			count[c]++
		}
	}
	for _, t := range valid {
		switch {
		case t.Outcome != Valid:
		case s.quota != nil && len(s.chosen) == *s.quota:
			t.Outcome, t.Reason = Capped, "enough tasks"
		default:
			s.chosen = append(s.chosen, t)
		}
	}
}
