package synth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Run creates tasks from the repositories and writes them to cfg.Out. It can be stopped
// at any time; a later call with the same settings resumes from the journal in that
// directory. The summary lists repositories that cannot be used. If none can be used,
// Run returns a NoUsableRepoError.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Summary{}, err
	}
	j, err := openJournal(cfg.Out, cfg.settings())
	if err != nil {
		return Summary{}, err
	}
	st := &factory{cfg: cfg, journal: j, started: time.Now(), budget: newModelBudget(cfg.MaxCost, j.spent())}
	for _, r := range cfg.Repos {
		st.states = append(st.states, &repoState{repo: r, seed: cfg.Seed, trials: map[string]*Trial{}, tried: map[string]bool{}})
	}
	st.progress.Repos = len(st.states)
	begun := processCPU()
	err = st.work(ctx)
	err = errors.Join(err, j.add(entry{Overhead: &overhead{max(processCPU()-begun-j.added, 0)}}))
	var sum Summary
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = st.checkUsable()
	}
	if err == nil {
		sum, err = st.finish()
	} else {
		sum = st.summary()
	}
	if _, none := errors.AsType[*NoUsableRepoError](err); none { // so that another run can use the directory
		return sum, errors.Join(err, j.remove())
	}
	return sum, errors.Join(err, j.close())
}

// processCPU returns the seconds of CPU time of this process and of its children that have ended.
func processCPU() (seconds float64) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var used unix.Rusage
		if unix.Getrusage(who, &used) == nil {
			seconds += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
		}
	}
	return seconds
}

// work runs the workers until all jobs are done.
func (st *factory) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st.queue = newJobQueue(ctx, st.states)
	stop := context.AfterFunc(ctx, func() {
		st.queue.mu.Lock()
		defer st.queue.mu.Unlock()
		st.queue.wake.Broadcast()
	})
	defer stop()
	var group errgroup.Group
	for range st.cfg.Workers {
		group.Go(func() error {
			w := &worker{factory: st}
			defer w.leave(ctx)
			for {
				s, j, ok := st.queue.next(w.state)
				if !ok {
					return nil
				}
				started := time.Now()
				err := w.attempt(ctx, j)
				st.recordJob(j, time.Since(started).Seconds())
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				st.queue.done(s, err, st.advance)
			}
		})
	}
	return errors.Join(group.Wait(), st.queue.err)
}

// checkUsable returns a NoUsableRepoError if no repository can be used.
func (st *factory) checkUsable() error {
	refused := map[string]string{}
	for _, s := range st.states {
		if s.refused == "" {
			return nil
		}
		refused[s.repo.Task.InstanceID] = s.refused
	}
	return &NoUsableRepoError{refused}
}

// maxAttempts is how often a job is tried if it fails with an infrastructure failure.
const maxAttempts = 3

// attempt runs a job, and retries it in a new sandbox after an infrastructure failure.
func (w *worker) attempt(ctx context.Context, j job) (err error) {
	for range maxAttempts {
		err = j.do(ctx, w)
		_, isOperatorError := errors.AsType[*OperatorError](err)
		_, isModelError := errors.AsType[*modelError](err)
		if err == nil || isOperatorError || isModelError || ctx.Err() != nil {
			return err
		}
		w.leave(ctx)
	}
	return fmt.Errorf("%s, tried %d times: %w", j.key, maxAttempts, err)
}

// The phases of a repository. Each is planned when the previous one is done.
const (
	phaseFirst = iota // the first run of the survey
	phaseSurveyParts
	phaseDraw
	phaseTrials
	phaseComposed
	phaseRelease
	phaseForge
	phaseDone
)

// advance plans the next jobs of a repository that has none left.
func (st *factory) advance(s *repoState) error {
	if !st.waitsForRound(s) {
		if err := st.advanceFrom(s, s.phase+1); err != nil {
			return err
		}
	}
	if st.cfg.Tasks > 0 {
		return st.nextRound()
	}
	return nil
}

// advanceFrom plans the first phase that has jobs, starting with the given phase.
func (st *factory) advanceFrom(s *repoState, phase int) error {
	for ; phase <= phaseDone && len(s.pending) == 0; phase++ {
		s.phase = phase
		switch {
		case s.refused != "":
			s.phase = phaseDone
			return nil
		case s.phase == phaseSurveyParts && !s.surveyed:
			st.planSurveyParts(s)
		case s.phase == phaseDraw && !s.surveyed:
			st.planDraw(s)
		case st.waitsForRound(s):
			return nil
		case s.phase == phaseTrials:
			st.plan(s, s.drawn)
		case s.phase == phaseComposed && slices.Contains(st.cfg.Kinds, KindComposed):
			st.plan(s, s.compose())
		case s.phase == phaseRelease:
			st.dropUnreliable(s)
			s.choose(st.cfg)
			st.planReleases(s)
		case s.phase == phaseForge:
			st.planForgeries(s)
		case s.phase == phaseDone:
			st.rejectForgeable(s)
			st.rejectUnreliable(s)
		}
	}
	return nil
}

// plan adds jobs for the trials of candidates, except those that an earlier run judged.
func (st *factory) plan(s *repoState, list []candidate) {
	for _, c := range list {
		s.order = append(s.order, c.Key)
		if known := st.journal.trial(s.repo.Task.InstanceID, c.Key); known != nil {
			s.trials[c.Key] = known.clone()
			st.update(func(p *Progress) { p.count(known); p.Resumed++ })
			continue
		}
		s.pending = append(s.pending, job{key: "the candidate " + c.Key + " of " + s.repo.Task.InstanceID, kind: jobTrial, units: 1, do: func(ctx context.Context, w *worker) error {
			if err := w.enter(ctx, s); err != nil {
				return err
			}
			t, err := w.judge(ctx, s, c)
			if overBudget(err) {
				w.update(func(p *Progress) { p.OverBudget++ })
				return nil
			}
			if err != nil {
				return err
			}
			if err := w.journal.add(entry{Trial: t}); err != nil {
				return err
			}
			w.queue.mu.Lock()
			s.trials[c.Key] = t.clone()
			w.queue.mu.Unlock()
			w.update(func(p *Progress) { p.count(t) })
			return nil
		}})
	}
	st.update(func(p *Progress) { p.Planned += len(list) })
}
