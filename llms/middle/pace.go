package middle

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/llms"
)

// PaceConfig limits the calls to one endpoint; 0 means no limit.
type PaceConfig struct {
	RPM      float64 // requests per minute
	TPM      float64 // tokens per minute, prompt and answer
	Parallel int     // calls at once
}

// The limit of concurrent calls adapts to the server by additive increase and multiplicative
// decrease: a refusal multiplies the limit by shrink, at most once per cooldown; after as many
// answers as its value, the limit grows by one. 5xx errors do not change it.
const (
	shrink   = 0.8
	cooldown = 15 * time.Second
)

// maxPause limits how long one refusal delays all calls to an endpoint.
const maxPause = time.Minute

// Pace keeps the calls to one endpoint within its rate limits. Calls start in the order in
// which they arrive. Tokens are reserved before a call and settled after it. All clients of
// an endpoint share one Pace, which is safe for concurrent use.
type Pace struct {
	cfg      PaceConfig
	turn     chan struct{} // held by the next call
	freed    chan struct{} // signals that a call has ended
	requests *bucket
	tokens   *bucket

	mu          sync.Mutex
	running     int
	parallel    float64   // current limit of concurrent calls, +Inf if there is none yet
	answers     int       // since parallel last changed
	cooldownEnd time.Time // parallel is not decreased before this time
	pauseEnd    time.Time // no call starts before this time
	refused     int       // calls that the server refused because of its rate limits
	failed      int       // calls that failed otherwise
}

// NewPace returns a Pace with full buckets.
func NewPace(cfg PaceConfig) *Pace {
	p := &Pace{cfg: cfg, turn: make(chan struct{}, 1), freed: make(chan struct{}, 1), parallel: math.Inf(1)}
	if cfg.Parallel > 0 {
		p.parallel = float64(cfg.Parallel)
	}
	// Requests are spread evenly over the minute. Tokens for a quarter of a minute may be
	// used at once, because one call needs thousands.
	p.requests, p.tokens = newBucket(cfg.RPM, 60), newBucket(cfg.TPM, 4)
	return p
}

// Begin waits until a call that needs the given number of tokens may start. It fails only if ctx ends. If it
// succeeds, the caller must call End once.
func (p *Pace) Begin(ctx context.Context, tokens float64) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the model's rate: %w", context.Cause(ctx))
	}
	for {
		wait, ok := p.admit(tokens)
		if ok {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.freed:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for the model's rate: %w", context.Cause(ctx))
		}
		timer.Stop()
	}
}

// admit starts a call and returns true, or returns how long to wait.
func (p *Pace) admit(tokens float64) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if float64(p.running) >= p.parallel {
		return time.Hour, false // the end of a call interrupts the wait
	}
	if wait := max(p.pauseEnd.Sub(now), p.requests.until(now, 1), p.tokens.until(now, tokens)); wait > 0 {
		return wait, false
	}
	p.requests.take(1)
	p.tokens.take(tokens)
	p.running++
	return 0, true
}

// End settles a call, with its reserved and used tokens and its error.
func (p *Pace) End(reserved, used float64, err error) {
	p.mu.Lock()
	p.running--
	p.tokens.take(used - reserved)
	p.adapt(err)
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// adapt adjusts the limit of concurrent calls and the pause to the result of a call.
func (p *Pace) adapt(err error) {
	now := time.Now()
	e, failed := asError(err)
	switch {
	case err == nil:
		if p.answers++; !math.IsInf(p.parallel, 1) && float64(p.answers) >= p.parallel {
			p.answers = 0
			p.parallel++
			if p.cfg.Parallel > 0 {
				p.parallel = min(p.parallel, float64(p.cfg.Parallel))
			}
		}
	case failed && (e.Class == llms.ClassRateLimit || e.Class == llms.ClassConcurrency):
		p.refused++
		// If there were too many concurrent calls, fewer calls suffice; a pause is not needed.
		if until := now.Add(min(e.RetryAfter, maxPause)); e.Class == llms.ClassRateLimit && until.After(p.pauseEnd) {
			p.pauseEnd = until
		}
		if now.Before(p.cooldownEnd) {
			return
		}
		p.parallel = max(1, math.Floor(min(p.parallel, float64(p.running+1))*shrink))
		p.answers, p.cooldownEnd = 0, now.Add(cooldown)
	case failed:
		p.failed++
	}
}

// PaceState is the state of a Pace at one moment.
type PaceState struct {
	Running  int           // calls
	Parallel float64       // current limit of concurrent calls, +Inf if there is none
	Refused  int           // calls that the server refused because of its rate limits
	Failed   int           // calls that failed otherwise
	Pause    time.Duration // no call starts during this time
}

// State returns the current state.
func (p *Pace) State() PaceState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PaceState{p.running, p.parallel, p.refused, p.failed, max(0, time.Until(p.pauseEnd))}
}

// bucket refills by rate units per second. A call that needs more than its size waits until
// it is full and leaves a negative level. A nil *bucket is unlimited.
type bucket struct {
	rate, size, level float64
	at                time.Time
}

// newBucket returns a full bucket that holds 1/part of the units of a minute, at least one.
// It returns nil if perMinute is 0.
func newBucket(perMinute float64, part float64) *bucket {
	if perMinute <= 0 {
		return nil
	}
	size := max(1, perMinute/part)
	return &bucket{rate: perMinute / 60, size: size, level: size, at: time.Now()}
}

// until refills the bucket and returns how long it takes until the units are available.
func (b *bucket) until(now time.Time, units float64) time.Duration {
	if b == nil {
		return 0
	}
	b.level = min(b.size, b.level+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	missing := min(units, b.size) - b.level
	if missing <= 1e-9 {
		return 0
	}
	return time.Duration(math.Ceil(missing / b.rate * float64(time.Second)))
}

// take removes units; a negative number returns them.
func (b *bucket) take(units float64) {
	if b != nil {
		b.level = min(b.size, b.level-units)
	}
}
