package observe

import (
	"fmt"
	"io"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Plain writes one line per finished or retried job, and a status line at most once
// per Every, for logs and pipes.
type Plain struct {
	progress
	Every time.Duration // default one minute
}

// NewPlain returns a Plain that writes to w.
func NewPlain(w io.Writer) *Plain { return &Plain{progress: newProgress(w), Every: time.Minute} }

// RunStarted implements Observer.
func (p *Plain) RunStarted(s Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(s)
}

// JobStarted implements Observer.
func (p *Plain) JobStarted(j schemas.Job, _ int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[j.EpisodeID] = true
}

// Step implements Observer.
func (p *Plain) Step(schemas.Job, schemas.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeStatusIfDue()
}

// JobRetried implements Observer.
func (p *Plain) JobRetried(j schemas.Job, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.W, p.retryLine(j, cause))
}

// JobFinished implements Observer.
func (p *Plain) JobFinished(j schemas.Job, e Episode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countFinished(j, e)
	fmt.Fprintln(p.W, p.episodeLine(j, e))
	p.writeStatusIfDue()
}

// RunFinished implements Observer.
func (p *Plain) RunFinished(Report) {}

// writeStatusIfDue writes the status line if the last one is at least Every old.
func (p *Plain) writeStatusIfDue() {
	if now := p.Now(); now.Sub(p.last) >= p.Every {
		p.last = now
		fmt.Fprintln(p.W, p.statusLine())
	}
}
