package synth

import (
	"context"
	"sync"
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
