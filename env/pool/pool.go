// Package pool keeps started sandboxes ready, so that whoever needs one does
// not wait for its start: boot, lend once, destroy.
//
// A Pool is an env.Driver over another. A sandbox is booted ahead in the
// background, handed to one owner, and closed by that owner; it never comes
// back, so that "fresh" means the same with and without a pool. Where none is
// ready the caller starts its own and gets its own error: nobody ever waits for
// the background.
package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Config says how much is kept ready.
type Config struct {
	Driver env.Driver
	Size   int           // sandboxes ready for each spec that was asked for
	Total  int           // over all specs; 0 = 4 times Size
	Starts int           // background starts at once; 0 = 2
	Idle   time.Duration // a sandbox nobody took for so long is closed; 0 = 5 minutes
}

// Label is the label of a sandbox that was booted before anybody asked for it.
// It keeps that label: what is left behind is found by its owner, not by it.
const Label = "warm"

const (
	startBound = 2 * time.Minute // one background start
	aliveBound = time.Second     // the question whether a sandbox still answers
	closeBound = 30 * time.Second
	firstPause = time.Second // after a failed background start; doubles
	maxPause   = time.Minute
)

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the pool of sandboxes is closed")

// Pool implements env.Driver. Safe for concurrent use; Close ends it.
type Pool struct {
	env.Driver
	cfg Config

	life   context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // every goroutine of the pool
	slots  chan struct{}  // background starts under way
	idle   *time.Timer    // fires when the oldest ready sandbox expires

	mu      sync.Mutex
	closed  bool
	shelves map[string]*shelf
	asked   uint64 // counts Starts: the age of a shelf
	stats   Stats
}

// shelf holds what is ready for one spec.
type shelf struct {
	spec     env.SandboxSpec
	ready    []warm // oldest first
	starting int
	asked    uint64 // when it was last asked for
	pause    time.Duration
	until    time.Time // no background start before
}

type warm struct {
	sandbox env.Sandbox
	since   time.Time
}

// Stats counts what a pool has done so far.
type Stats struct {
	Warm    int // Starts answered from what was ready
	Cold    int // Starts the caller waited for
	Dead    int // ready sandboxes that no longer answered
	Expired int // ready sandboxes that were closed unused
	Failed  int // background starts that failed
}

// New makes a pool; nothing is started before the first Start.
func New(cfg Config) *Pool {
	if cfg.Total <= 0 {
		cfg.Total = 4 * cfg.Size
	}
	if cfg.Starts <= 0 {
		cfg.Starts = 2
	}
	if cfg.Idle <= 0 {
		cfg.Idle = 5 * time.Minute
	}
	p := &Pool{Driver: cfg.Driver, cfg: cfg, slots: make(chan struct{}, cfg.Starts), idle: time.NewTimer(cfg.Idle), shelves: map[string]*shelf{}}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.work.Go(p.expire)
	return p
}

// Start implements env.Driver: a ready sandbox that still answers, or one
// started now. Build sandboxes (network, writable mounts) are always started.
func (p *Pool) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if spec.Network || writes(spec.Mounts) {
		return p.Driver.Start(ctx, spec)
	}
	key, err := keyOf(spec)
	if err != nil {
		return nil, err
	}
	for {
		sb, err := p.take(key, spec)
		if err != nil {
			return nil, err
		}
		if sb == nil {
			return p.cold(ctx, key, spec)
		}
		if alive(ctx, sb) {
			p.count(func(s *Stats) { s.Warm++ })
			return sb, nil
		}
		p.discard(sb)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.count(func(s *Stats) { s.Dead++ })
	}
}

// cold starts a sandbox for a waiting caller. That it worked is news for the
// background, too.
func (p *Pool) cold(ctx context.Context, key string, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := p.Driver.Start(ctx, spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Cold++
	if s := p.shelves[key]; s != nil && err == nil {
		s.pause, s.until = 0, time.Time{}
		p.refill(s)
	}
	return sb, err
}

// take removes the freshest sandbox of a shelf, nil where there is none, and
// has its place filled again.
func (p *Pool) take(key string, spec env.SandboxSpec) (env.Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	s := p.shelves[key]
	if s == nil {
		s = &shelf{spec: spec}
		s.spec.Label = Label
		p.shelves[key] = s
		// The caller's own start tells first whether the spec works at all.
		s.until = time.Now().Add(firstPause)
	}
	p.asked++
	s.asked = p.asked
	var sb env.Sandbox
	if n := len(s.ready); n > 0 {
		sb = s.ready[n-1].sandbox
		s.ready = s.ready[:n-1]
	}
	p.refill(s)
	return sb, nil
}

// Stats tells what happened so far.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Ready is how many sandboxes wait for an owner.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.shelves {
		n += len(s.ready)
	}
	return n
}

func (p *Pool) count(f func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

// Close ends the background and closes every sandbox nobody took; those that
// were handed out stay their owners'. Safe to call twice.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.work.Wait() // starts were cancelled, closes are bounded
	p.mu.Lock()
	var left []env.Sandbox
	for _, s := range p.shelves {
		for _, w := range s.ready {
			left = append(left, w.sandbox)
		}
	}
	clear(p.shelves)
	p.mu.Unlock()
	errs := make([]error, len(left))
	var closing sync.WaitGroup
	for i, sb := range left {
		closing.Go(func() { errs[i] = sb.Close(ctx) })
	}
	closing.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing warm sandboxes: %w", err)
	}
	return nil
}

// alive asks for one answer.
func alive(ctx context.Context, sb env.Sandbox) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveBound)
	defer cancel()
	_, err := sb.Stat(ctx, "/")
	return err == nil
}

// keyOf names everything of a spec that a sandbox depends on.
func keyOf(spec env.SandboxSpec) (string, error) {
	spec.Label = ""
	b, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("naming a sandbox: %w", err)
	}
	return string(b), nil
}

func writes(mounts []env.Mount) bool {
	for _, m := range mounts {
		if m.Write {
			return true
		}
	}
	return false
}
