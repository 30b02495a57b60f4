package synth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// choose marks valid trials that do not become tasks: duplicates, equivalents, bugs of
// another difficulty, and those beyond a cap or the quota. It adds the rest to s.chosen. It
// considers trials in the order in which they were planned, whatever the order in which they
// finished, except that the caps admit trials of rarer operators first, and crude bugs last.
func (s *repoState) choose(cfg Config) {
	var valid []*Trial
	for _, key := range s.order {
		if t := s.trials[key]; t != nil && t.Outcome == Valid {
			valid = append(valid, t)
		}
	}
	bodies, shapes := map[string]string{}, map[string]string{} // -> key of the first trial
	byBehavior := map[string]*Trial{}
	for _, t := range valid {
		if other, ok := bodies[t.Body]; ok && t.Body != "" {
			t.Outcome, t.Reason = Duplicate, "the same code as "+other
			continue
		}
		bodies[t.Body] = t.Key
		if other, ok := shapes[t.Shape]; ok && t.Shape != "" {
			t.Outcome, t.Reason = Equivalent, "the same change as "+other+", in a copy of the function"
			continue
		}
		shapes[t.Shape] = t.Key
		behavior := t.behavior()
		other := byBehavior[behavior]
		switch {
		case other == nil:
			byBehavior[behavior] = t
		case len(t.Patch) < len(other.Patch): // the smallest diff stays
			other.Outcome, other.Reason = Equivalent, "behaves like "+t.Key
			byBehavior[behavior] = t
		default:
			t.Outcome, t.Reason = Equivalent, "behaves like "+other.Key
		}
	}
	for _, t := range valid {
		if t.Outcome == Valid && !cfg.wants(t.Difficulty) {
			t.Outcome, t.Reason = OtherDifficulty, "difficulty "+t.Difficulty.Level+", gold difficulty "+t.Difficulty.GoldLevel
		}
	}
	s.cap(valid, cfg.Caps)
}

// wants reports whether a bug has one of the requested levels of difficulty.
func (c Config) wants(d schemas.Difficulty) bool {
	return (len(c.Difficulty) == 0 || slices.Contains(c.Difficulty, d.Level)) &&
		(len(c.GoldDifficulty) == 0 || slices.Contains(c.GoldDifficulty, d.GoldLevel))
}

// behavior identifies a trial's function, failing tests and first divergence. Trials with equal
// results are equivalent.
func (t *Trial) behavior() string {
	where := t.Divergence
	if where == "" {
		where = t.Key // unknown, so the trial is not equivalent to any other
	}
	return strings.Join([]string{strings.Join(t.Funcs, " "), schemas.ShortHash(t.FailToPass), where}, "\x00")
}

// cap applies the caps and then the quota, and adds the trials within them to s.chosen.
func (s *repoState) cap(valid []*Trial, bounds Caps) {
	count := capCount{}
	// Crude bugs last, and rarer operators first, so that the caps do not keep only common ones.
	operators := map[string]int{}
	for _, t := range valid {
		operators[strings.Join(t.Operators, "+")]++
	}
	ordered := slices.Clone(valid)
	slices.SortStableFunc(ordered, func(a, b *Trial) int {
		return cmp.Or(s.crudeness(a)-s.crudeness(b), cmp.Compare(operators[strings.Join(a.Operators, "+")], operators[strings.Join(b.Operators, "+")]))
	})
	for _, t := range ordered {
		if t.Outcome != Valid {
			continue
		}
		limits := t.limits(bounds)
		if full := count.admit(limits); full != "" {
			t.Outcome, t.Reason = Capped, fmt.Sprintf("the cap of %d for %s is reached", limits[full], full)
		}
	}
	slices.SortStableFunc(valid, func(a, b *Trial) int { return s.crudeness(a) - s.crudeness(b) })
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

// limits returns the names of the caps that count a bug, and their limits.
func (c Caps) limits(functions, operators, lines, files []string) map[string]int {
	out := map[string]int{}
	add := func(name string, n int) {
		if n > 0 {
			out[name] = n
		}
	}
	for _, function := range functions {
		add("function "+function, c.Function)
		for _, operator := range operators {
			add(operator+" in "+function, c.Operator)
		}
	}
	for _, line := range lines {
		add("line "+line, c.Line)
	}
	for _, file := range files {
		add("file "+file, c.File)
	}
	return out
}

func (t *Trial) limits(c Caps) map[string]int {
	return c.limits(t.Funcs, t.Operators, t.Sites, slices.Collect(maps.Keys(t.Lines)))
}

// capCount is how many bugs each cap has counted.
type capCount map[string]int

// admit counts a bug, unless one of its caps is reached. It returns the name of the first such cap.
func (n capCount) admit(limits map[string]int) (full string) {
	names := slices.Sorted(maps.Keys(limits))
	if i := slices.IndexFunc(names, func(name string) bool { return n[name] >= limits[name] }); i >= 0 {
		return names[i]
	}
	for _, name := range names {
		n[name]++
	}
	return ""
}

// crudeness returns 1 if a bug is crude, otherwise 0.
func (s *repoState) crudeness(t *Trial) int {
	if s.isCrude(t) {
		return 1
	}
	return 0
}

// obviousErrors are the exceptions of a mistake that the first call shows: a value of a wrong type, or a wrong name.
var obviousErrors = []string{"TypeError", "AttributeError", "NameError", "UnboundLocalError"}

// isCrude reports whether a developer would notice a bug before committing it: it breaks many tests, or each test that
// executes the changed lines fails at once, because they raise an exception that says what is wrong.
func (s *repoState) isCrude(t *Trial) bool {
	if len(t.FailToPass) > max(20, len(s.kept)/10) {
		return true
	}
	if len(t.Failures) == 0 {
		return false
	}
	for _, f := range t.Failures {
		if !slices.Contains(obviousErrors, f.Type) || visible(f, t.Lines) != seenRoot {
			return false
		}
	}
	lines, _ := changedLines(t.Patch)
	tests, reached := s.coverage.covering(lines)
	return !reached || tests == nil || len(tests) <= len(t.FailToPass)
}
