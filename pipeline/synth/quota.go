package synth

import (
	"cmp"
	"math"
	"slices"
)

// A run with a number of tasks (Config.Tasks) tries candidates in rounds: when no
// repository has work left, it compares the number of chosen bugs with the number of
// tasks and plans as many further candidates as are probably needed. Rounds begin after
// all surveys and depend only on verdicts, so the tasks do not depend on the number of
// workers.

const (
	priorYield  = 0.4  // tasks per candidate that a repository is expected to give before it is tried
	priorWeight = 5    // candidates as which this expectation counts
	spare       = 0.05 // share of the chosen bugs that release checks may reject
)

// waitsForRound reports whether a repository is in the trials of a run with a number of tasks.
func (st *factory) waitsForRound(s *repoState) bool {
	return st.cfg.Tasks > 0 && s.phase == phaseTrials && s.refused == ""
}

// nextRound plans the next round if all repositories wait for it. Without one, they go
// on to the next phase.
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
	for pending := 0; pending == 0 && st.planRound(waiting); {
		for _, s := range waiting {
			pending += len(s.pending)
		}
		if pending > 0 {
			return nil
		}
	}
	have := make([]int, len(waiting))
	for i, s := range waiting {
		have[i] = s.choosable(st.cfg)
	}
	for i, share := range shares(st.wanted(), have) {
		waiting[i].quota = &share
		if err := st.advanceFrom(waiting[i], phaseTrials+1); err != nil {
			return err
		}
	}
	return nil
}

// wanted is the number of bugs to choose.
func (st *factory) wanted() int { return int(math.Ceil(float64(st.cfg.Tasks) * (1 + spare))) }

// planRound plans candidates of the repositories that can contribute to the missing
// tasks. It returns false if none is missing or no candidate is left.
func (st *factory) planRound(waiting []*repoState) bool {
	have, most, yields := make([]int, len(waiting)), make([]int, len(waiting)), make([]float64, len(waiting))
	for i, s := range waiting {
		have[i] = s.choosable(st.cfg)
		yields[i] = (float64(have[i]) + priorYield*priorWeight) / float64(s.tried+priorWeight)
		most[i] = have[i] + int(math.Ceil(float64(len(s.drawn)-s.tried)*yields[i]))
	}
	planned := false
	for i, share := range shares(st.wanted(), most) {
		s := waiting[i]
		if share <= have[i] || s.tried == len(s.drawn) {
			continue
		}
		needed := float64(share-have[i]) / yields[i]
		if s.tried == 0 {
			needed /= 2 // the yield may be twice the prior
		}
		n := min(len(s.drawn)-s.tried, int(math.Ceil(needed)))
		st.plan(s, s.drawn[s.tried:s.tried+n])
		s.tried += n
		planned = true
	}
	return planned
}

// shares divides n tasks as evenly as possible among repositories that can give at most
// the listed numbers. If these are too few, each gets its number.
func shares(n int, most []int) []int {
	order := make([]int, len(most))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(most[a], most[b]) })
	out := make([]int, len(most))
	for done, i := range order {
		left := len(order) - done
		out[i] = min(most[i], (n+left-1)/left)
		n -= out[i]
	}
	return out
}

// choosable returns the number of bugs that would be chosen among those tried so far.
func (s *repoState) choosable(cfg Config) int {
	trial := &repoState{order: s.order, trials: map[string]*Trial{}}
	for key, t := range s.trials {
		trial.trials[key] = t.clone()
	}
	trial.choose(cfg)
	return len(trial.chosen)
}
