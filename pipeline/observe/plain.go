package observe

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// statusEvery is the interval at which Plain writes a status line.
const statusEvery = time.Minute

// Plain writes one line per finished job, one for each new reason of a retry, and a status line
// every minute, for logs and pipes.
type Plain struct{ progress }

// NewPlain returns a Plain that writes to w.
func NewPlain(w io.Writer) *Plain { return &Plain{newProgress(w)} }

// RunStarted implements Observer.
func (p *Plain) RunStarted(s Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, p.begin(s))
	p.tickEvery(statusEvery, p.writeStatus)
}

// JobStarted implements Observer.
func (p *Plain) JobStarted(schemas.Job, int) {}

// Step implements Observer.
func (p *Plain) Step(schemas.Job, schemas.Step) {}

// JobRetried implements Observer.
func (p *Plain) JobRetried(j schemas.Job, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line := p.retryLine(j, cause); line != "" {
		fmt.Fprintln(p.w, line)
	}
}

// JobFinished implements Observer.
func (p *Plain) JobFinished(j schemas.Job, e Episode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countFinished(e)
	fmt.Fprintln(p.w, p.episodeLine(j, e))
}

// RunFinished implements Observer.
func (p *Plain) RunFinished(Report) { p.stopTicks() }

func (p *Plain) writeStatus() {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, now := p.start.Activities.Now(), time.Now()
	line := fit("  ", slices.Concat(p.countParts(a, true), p.outcomeParts(), p.timeParts(a, now), p.costParts(a), p.speedParts(a, now)), 0)
	fmt.Fprintln(p.w, strings.Join(append([]string{line}, a.Waits(p.start.CallTimeout, now)...), "; "))
}
