package synth

import (
	"context"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// job is one thing that a worker does for a repository.
type job struct {
	do  func(context.Context, *worker) error
	key string
}

// shop hands out jobs. A worker stays with its repository as long as that has
// jobs, because its sandbox holds it; then it takes a new one, then it helps.
type shop struct {
	mu     sync.Mutex
	wake   *sync.Cond
	states []*state
	fresh  int // states[fresh:] were not begun
	err    error
	ended  func() bool
}

func newShop(ctx context.Context, states []*state) *shop {
	s := &shop{states: states, ended: func() bool { return ctx.Err() != nil }}
	s.wake = sync.NewCond(&s.mu)
	return s
}

// next returns a job and its repository; ok is false when there is none left.
func (p *shop) next(current *state) (s *state, j job, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.err != nil || p.ended() {
			return nil, j, false
		}
		if current != nil && len(current.pending) > 0 {
			return current, current.take(), true
		}
		if p.fresh < len(p.states) {
			s = p.states[p.fresh]
			p.fresh++
			s.running++
			return s, job{do: s.begin, key: "survey"}, true
		}
		busy := false
		for _, other := range p.states {
			if len(other.pending) > 0 && (s == nil || len(other.pending) > len(s.pending)) {
				s = other
			}
			busy = busy || other.running > 0
		}
		if s != nil {
			return s, s.take(), true
		}
		if !busy {
			return nil, j, false
		}
		p.wake.Wait()
	}
}

// take removes the first pending job. The shop is locked.
func (s *state) take() job {
	j := s.pending[0]
	s.pending = s.pending[1:]
	s.running++
	return j
}

// done ends a job. When it was the last of its repository's phase the next one
// is planned, under the lock: planning is quick and touches the state alone.
func (p *shop) done(s *state, err error, advance func(*state) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.running--
	if err == nil && s.running == 0 && len(s.pending) == 0 {
		err = advance(s)
	}
	if err != nil && p.err == nil {
		p.err = err
	}
	p.wake.Broadcast()
}

// stage is one run of the factory.
type stage struct {
	cfg     Config
	journal *journal
	shop    *shop
	purse   *purse
	states  []*state
	begun   time.Time

	mu       sync.Mutex
	progress Progress
}

// worker does jobs, one at a time, on a bench that it keeps for a repository.
type worker struct {
	*stage
	bench *bench
	at    *state // whose tree the bench holds
}

// state is a repository under way.
type state struct {
	repo    Repo
	seed    int64
	command command
	driver  env.Driver
	spec    env.SandboxSpec
	history *workspace.History // nil: none that can be read, unread says why
	unread  string
	note    string
	calls   map[string][]string

	kept     []string
	seconds  float64
	litter   []string
	coverage coverage

	drawn    []candidate
	releases map[string]release

	phase   int
	pending []job
	running int
	trials  map[string]*Trial
	order   []string // keys of the trials, as they were planned
	chosen  []*Trial
	refused string
}

// enter gives the worker a bench with the tree of a repository.
func (w *worker) enter(ctx context.Context, s *state) error {
	if w.bench != nil && w.at == s {
		return nil
	}
	w.leave(ctx)
	b, err := openBench(ctx, s.driver, s.spec, s.repo.Tree, s.command)
	if err != nil {
		return err
	}
	w.bench, w.at = b, s
	return nil
}

// leave closes the bench.
func (w *worker) leave(ctx context.Context) {
	if w.bench != nil {
		_ = w.bench.close(ctx) // nothing of it is used again
	}
	w.bench, w.at = nil, nil
}

// told changes the progress and tells of it.
func (st *stage) told(change func(*Progress)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(&st.progress)
	st.progress.Seconds = time.Since(st.begun).Seconds()
	st.cfg.Progress(st.progress)
}
