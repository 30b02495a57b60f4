package synth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Caps on the number of tasks.
const (
	maxPerFunction = 3
	maxPerOperator = 2 // per operator in a function
	maxPerFile     = 25
	maxShare       = 20 // 1/maxShare of the tasks may be of one repository, if there are enough repositories
)

// choose marks valid trials that do not become tasks: duplicates, equivalents, and
// those beyond a cap. It chooses the rest. The order of planning decides, not the order
// in which the trials finished.
func (s *repoState) choose() {
	var valid []*Trial
	for _, key := range s.order {
		if t := s.trials[key]; t != nil && t.Outcome == Valid {
			valid = append(valid, t)
		}
	}
	bodies := map[string]string{}
	same := map[string]*Trial{}
	for _, t := range valid {
		if other, ok := bodies[t.Body]; ok && t.Body != "" {
			t.Outcome, t.Reason = Duplicate, "the code of "+other
			continue
		}
		bodies[t.Body] = t.Key
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
	s.cap(valid)
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
func (s *repoState) cap(valid []*Trial) {
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
		add := func(name string, most int) { caps = append(caps, name); limit[name] = most }
		for _, fn := range t.Funcs {
			add("function "+fn, maxPerFunction)
			for _, op := range slices.Compact(slices.Sorted(slices.Values(t.Operators))) {
				add(op+" in "+fn, maxPerOperator)
			}
		}
		for file := range t.Lines {
			add("file "+file, maxPerFile)
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
		if t.Outcome == Valid {
			s.chosen = append(s.chosen, t)
		}
	}
}
