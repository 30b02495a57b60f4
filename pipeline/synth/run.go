package synth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run makes tasks of the repositories and writes them to Out. It may be stopped
// at any time and goes on with what the journal there holds. A repository that
// cannot be used is told in the summary; only when none can, it is an error.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Summary{}, err
	}
	j, err := openJournal(cfg.Out, cfg.settings())
	if err != nil {
		return Summary{}, err
	}
	st := &stage{cfg: cfg, journal: j, begun: time.Now(), purse: newPurse(cfg.MaxCost, j.spent())}
	for _, r := range cfg.Repos {
		st.states = append(st.states, &state{repo: r, seed: cfg.Seed, trials: map[string]*Trial{}})
	}
	st.progress.Repos = len(st.states)
	err = st.work(ctx)
	var sum Summary
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = st.usable()
	}
	if err == nil {
		sum, err = st.finish()
	} else {
		sum = st.summary()
	}
	if _, none := errors.AsType[*NoneError](err); none { // the place is free for what was meant
		return sum, errors.Join(err, j.drop())
	}
	return sum, errors.Join(err, j.close())
}

// work has the workers do all jobs.
func (st *stage) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st.shop = newShop(ctx, st.states)
	stop := context.AfterFunc(ctx, func() {
		st.shop.mu.Lock()
		defer st.shop.mu.Unlock()
		st.shop.wake.Broadcast()
	})
	defer stop()
	var group errgroup.Group
	for range st.cfg.Workers {
		group.Go(func() error {
			w := &worker{stage: st}
			defer w.leave(ctx)
			for {
				s, j, ok := st.shop.next(w.at)
				if !ok {
					return nil
				}
				err := w.attempt(ctx, j)
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				st.shop.done(s, err, st.advance)
			}
		})
	}
	return errors.Join(group.Wait(), st.shop.err)
}

// usable is an error where no repository can be used.
func (st *stage) usable() error {
	refused := map[string]string{}
	for _, s := range st.states {
		if s.refused == "" {
			return nil
		}
		refused[s.repo.Task.InstanceID] = s.refused
	}
	return &NoneError{refused}
}

// attempts is how often a job is tried when our own machinery fails.
const attempts = 3

// attempt does a job; after a failure of ours it is tried again in a fresh sandbox.
func (w *worker) attempt(ctx context.Context, j job) (err error) {
	for range attempts {
		err = j.do(ctx, w)
		_, wrong := errors.AsType[*OperatorError](err)
		if _, model := errors.AsType[*modelError](err); err == nil || wrong || model || ctx.Err() != nil {
			return err
		}
		w.leave(ctx)
	}
	return fmt.Errorf("%s, tried %d times: %w", j.key, attempts, err)
}

// begin surveys a repository, or takes what an earlier run found of it.
func (s *state) begin(ctx context.Context, w *worker) error {
	found := w.journal.survey(s.repo.Task.InstanceID)
	if found == nil {
		var err error
		if found, err = w.survey(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.repo.Task.InstanceID, err)
		}
		if err := w.journal.add(entry{Repo: found}); err != nil {
			return err
		}
	} else if found.Refused == "" {
		if err := w.prepare(ctx, s); err != nil {
			return err
		}
	}
	s.adopt(found)
	s.drawn = found.Drawn
	w.told(func(p *Progress) { p.Surveyed++ })
	return nil
}

// The phases of a repository, each planned when the one before is done.
const (
	phaseSurvey = iota
	phaseTrials
	phaseComposed
	phaseRelease
	phaseDone
)

// advance plans the next phase that has something to do.
func (st *stage) advance(s *state) error {
	for s.phase < phaseDone && len(s.pending) == 0 {
		s.phase++
		switch {
		case s.refused != "":
			s.phase = phaseDone
		case s.phase == phaseTrials:
			st.plan(s, s.drawn)
		case s.phase == phaseComposed && slices.Contains(st.cfg.Kinds, KindComposed):
			st.plan(s, s.compose())
		case s.phase == phaseRelease:
			s.choose()
			st.planReleases(s)
		}
	}
	return nil
}

// plan adds the trials of candidates that no earlier run has judged.
func (st *stage) plan(s *state, list []candidate) {
	for _, c := range list {
		s.order = append(s.order, c.Key)
		if known := st.journal.trial(s.repo.Task.InstanceID, c.Key); known != nil {
			s.trials[c.Key] = known.clone()
			st.told(func(p *Progress) { p.count(known); p.Kept++ })
			continue
		}
		s.pending = append(s.pending, job{key: "the candidate " + c.Key + " of " + s.repo.Task.InstanceID, do: func(ctx context.Context, w *worker) error {
			if err := w.enter(ctx, s); err != nil {
				return err
			}
			t, err := w.try(ctx, s, c)
			if unasked(err) {
				w.told(func(p *Progress) { p.Unasked++ })
				return nil
			}
			if err != nil {
				return err
			}
			if err := w.journal.add(entry{Trial: t}); err != nil {
				return err
			}
			w.shop.mu.Lock()
			s.trials[c.Key] = t.clone()
			w.shop.mu.Unlock()
			w.told(func(p *Progress) { p.count(t) })
			return nil
		}})
	}
	st.told(func(p *Progress) { p.Planned += len(list) })
}
