package observe

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Start says what a run is going to do.
type Start struct {
	RunID, RunDir          string
	Selected, Reused, ToDo int
	Workers                int
}

// Observer is told what happens. Its methods are called from several
// goroutines and must not block.
type Observer interface {
	RunStarted(s Start)
	JobStarted(j schemas.Job, delivery int)
	Step(j schemas.Job, s schemas.Step)
	// JobRetried: an infrastructure failure; the job goes back to the queue.
	JobRetried(j schemas.Job, cause error)
	// JobFinished: the job has its outcome.
	JobFinished(j schemas.Job, e Episode)
	RunFinished(r Report)
}

// Silent observes nothing.
type Silent struct{}

func (Silent) RunStarted(Start)                 {}
func (Silent) JobStarted(schemas.Job, int)      {}
func (Silent) Step(schemas.Job, schemas.Step)   {}
func (Silent) JobRetried(schemas.Job, error)    {}
func (Silent) JobFinished(schemas.Job, Episode) {}
func (Silent) RunFinished(Report)               {}

// Plain writes one line per finished or retried job, and a status line at most
// once per Every while jobs move: progress for logs and pipes.
type Plain struct {
	W     io.Writer
	Every time.Duration // default one minute
	Now   func() time.Time

	mu       sync.Mutex
	start    Start
	begun    time.Time
	last     time.Time
	running  map[string]int // job -> steps so far
	outcomes map[string]int
	done     int
	cost     float64
}

// NewPlain returns a Plain that writes to w.
func NewPlain(w io.Writer) *Plain {
	return &Plain{W: w, Every: time.Minute, Now: time.Now, running: map[string]int{}, outcomes: map[string]int{}}
}

// RunStarted implements Observer.
func (p *Plain) RunStarted(s Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start, p.begun = s, p.Now()
	p.last = p.begun
	fmt.Fprintf(p.W, "run %s: %d selected, %d reused, %d to run on %d workers, in %s\n",
		s.RunID, s.Selected, s.Reused, s.ToDo, s.Workers, s.RunDir)
}

// JobStarted implements Observer.
func (p *Plain) JobStarted(j schemas.Job, _ int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[j.EpisodeID] = 0
}

// Step implements Observer.
func (p *Plain) Step(j schemas.Job, _ schemas.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[j.EpisodeID]++
	p.status()
}

// JobRetried implements Observer.
func (p *Plain) JobRetried(j schemas.Job, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, j.EpisodeID)
	fmt.Fprintf(p.W, "  retry  %s#%d: %s\n", j.Instance, j.Attempt, firstLine(cause.Error()))
}

// JobFinished implements Observer.
func (p *Plain) JobFinished(j schemas.Job, e Episode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, j.EpisodeID)
	p.done++
	p.outcomes[e.Outcome]++
	if e.CostUSD != nil {
		p.cost += *e.CostUSD
	}
	line := fmt.Sprintf("  [%d/%d] %-10s %s#%d  %s, %d steps, %s", p.done, p.start.ToDo, e.Outcome, j.Instance, j.Attempt,
		e.ExitReason, e.Steps, e.Wall.Round(10*time.Millisecond))
	if e.CostUSD != nil && *e.CostUSD > 0 {
		line += fmt.Sprintf(", $%.4f", *e.CostUSD)
	}
	if e.Cause != "" {
		line += ": " + firstLine(e.Cause)
	}
	fmt.Fprintln(p.W, line)
	p.status()
}

// RunFinished implements Observer.
func (p *Plain) RunFinished(Report) {}

// status writes the status line if it is due.
func (p *Plain) status() {
	now := p.Now()
	if now.Sub(p.last) < p.Every {
		return
	}
	p.last = now
	elapsed := now.Sub(p.begun)
	line := fmt.Sprintf("  -- %d/%d done, %d running, %s", p.done, p.start.ToDo, len(p.running), elapsed.Round(time.Second))
	if p.done > 0 {
		left := time.Duration(float64(elapsed) / float64(p.done) * float64(p.start.ToDo-p.done))
		line += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	if p.cost > 0 {
		line += fmt.Sprintf(", $%.2f", p.cost)
	}
	for _, o := range schemas.Outcomes {
		if n := p.outcomes[o]; n > 0 {
			line += fmt.Sprintf(", %s %d", o, n)
		}
	}
	fmt.Fprintln(p.W, line)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
