package synth

import (
	"cmp"
	"math"
	"slices"
)

// If Config.Tasks is set, a run tries candidates in rounds. When no repository has jobs
// left, the run compares the number of bugs that would be chosen with the requested number
// of tasks, and plans as many further candidates as it probably needs. The first round
// starts after all surveys, and rounds depend only on the results of trials, so the tasks
// do not depend on the number of workers.

const (
	priorYield  = 0.4  // expected tasks per candidate of a repository without trials
	priorWeight = 5    // weight of priorYield, as a number of candidates
	spareShare  = 0.05 // share of additional bugs, because release checks reject some
)

// waitsForRound reports whether a repository is in the phase that is divided into rounds.
func (st *factory) waitsForRound(s *repoState) bool {
	return st.cfg.Tasks > 0 && s.phase == phaseTrials && s.refused == ""
}

// nextRound plans the next round once all repositories wait for it. If no further round is
// needed or possible, they advance to the next phase.
func (st *factory) nextRound() error {
	var waiting []*repoState
	for _, s := range st.states {
		if s.phase < phaseTrials || st.waitsForRound(s) && (s.running > 0 || len(s.pending) > 0) {
			return nil
		}
		if st.waitsForRound(s) {
			waiting = append(waiting, s)
		}
	}
	// A round has no jobs if an earlier run has tried all its candidates. Then plan another.
	for pending := 0; pending == 0 && st.planRound(waiting); {
		for _, s := range waiting {
			pending += len(s.pending)
		}
		if pending > 0 {
			return nil
		}
	}
	have := make([]int, len(waiting)) // bugs that each repository can give
	for i, s := range waiting {
		all, _ := s.choosable(st.cfg)
		have[i] = len(all)
	}
	for i, share := range shares(st.wanted(), have) {
		waiting[i].quota = &share
		if err := st.advanceFrom(waiting[i], phaseTrials+1); err != nil {
			return err
		}
	}
	return nil
}

// wanted returns the number of bugs to choose in all repositories.
func (st *factory) wanted() int { return int(math.Ceil(float64(st.cfg.Tasks) * (1 + spareShare))) }

// planRound plans candidates of the repositories that can contribute to the missing tasks.
// It returns false if no task is missing or no candidate is left.
func (st *factory) planRound(waiting []*repoState) bool {
	// For each repository: the bugs found so far, the bugs that it can probably give in all, and the bugs per
	// candidate. Crude bugs do not count, because they are chosen only if nothing else is left.
	have, limits, yields := make([]int, len(waiting)), make([]int, len(waiting)), make([]float64, len(waiting))
	untried := make([][]candidate, len(waiting))
	for i, s := range waiting {
		_, good := s.choosable(st.cfg)
		have[i], untried[i] = len(good), s.untried(good, st.cfg.Caps)
		yields[i] = (float64(have[i]) + priorYield*priorWeight) / float64(len(s.tried)+priorWeight)
		limits[i] = have[i] + int(math.Ceil(float64(len(untried[i]))*yields[i]))
	}
	planned := false
	for i, share := range shares(st.wanted(), limits) {
		s := waiting[i]
		if share <= have[i] || len(untried[i]) == 0 {
			continue
		}
		needed := float64(share-have[i]) / yields[i]
		if len(s.tried) == 0 {
			needed /= 2 // start with few candidates, because the yield may be twice the expected one
		}
		list := untried[i][:min(len(untried[i]), int(math.Ceil(needed)))]
		st.plan(s, list)
		for _, c := range list {
			s.tried[c.Key] = true
		}
		planned = true
	}
	return planned
}

// untried returns drawn candidates that have not been tried. It leaves out those that the caps would exclude if the
// bugs found so far and the candidates before them in the list became tasks.
func (s *repoState) untried(found []*Trial, caps Caps) (out []candidate) {
	count := capCount{}
	for _, t := range found {
		count.admit(t.limits(caps))
	}
	for _, c := range s.drawn {
		if !s.tried[c.Key] && count.admit(c.limits(caps)) == "" {
			out = append(out, c)
		}
	}
	return out
}

// shares divides n tasks as evenly as possible among repositories, of which each can give at
// most the number in limits. If the limits add up to less than n, it returns the limits.
func shares(n int, limits []int) []int {
	order := make([]int, len(limits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(limits[a], limits[b]) })
	out := make([]int, len(limits))
	for done, i := range order {
		remaining := len(order) - done
		out[i] = min(limits[i], (n+remaining-1)/remaining)
		n -= out[i]
	}
	return out
}

// choosable returns the bugs that would be chosen among those tried so far, and those of them that are not crude.
func (s *repoState) choosable(cfg Config) (all, good []*Trial) {
	scratch := &repoState{order: s.order, kept: s.kept, coverage: s.coverage, trials: map[string]*Trial{}} // because choose changes trials
	for key, t := range s.trials {
		scratch.trials[key] = t.clone()
	}
	scratch.choose(cfg)
	return scratch.chosen, slices.DeleteFunc(slices.Clone(scratch.chosen), s.isCrude)
}
