package observe

// Progress while a run goes on: lines for logs and pipes (Plain), one line that
// is drawn again and again for a terminal (Live).

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/schemas"
)

// New is Live where w is a terminal that can redraw a line, Plain elsewhere.
func New(w io.Writer) Observer {
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if _, err := columns(f); err == nil {
			return NewLive(w, func() int { n, _ := columns(f); return n })
		}
	}
	return NewPlain(w)
}

// columns is the width of a terminal; an error where f is none.
func columns(f *os.File) (int, error) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, err
	}
	return int(size.Col), nil
}

// progress is what both of them count.
type progress struct {
	W   io.Writer
	Now func() time.Time

	mu       sync.Mutex
	start    Start
	begun    time.Time
	last     time.Time       // of the status line
	running  map[string]bool // jobs
	outcomes map[string]int
	done     int
	cost     float64
}

func newProgress(w io.Writer) progress {
	return progress{W: w, Now: time.Now, running: map[string]bool{}, outcomes: map[string]int{}}
}

func (p *progress) begin(s Start) {
	p.start, p.begun = s, p.Now()
	p.last = p.begun
	if s.Selected == 0 { // a worker sees its own jobs only
		fmt.Fprintf(p.W, "run %s: joined with %d slots, staging in %s\n", s.RunID, s.Workers, s.RunDir)
		return
	}
	fmt.Fprintf(p.W, "run %s: %s selected, %s reused, %s to run on %d workers, in %s\n",
		s.RunID, number(s.Selected), number(s.Reused), number(s.ToDo), s.Workers, s.RunDir)
}

func (p *progress) finished(j schemas.Job, e Episode) {
	delete(p.running, j.EpisodeID)
	p.done++
	p.outcomes[e.Outcome]++
	if e.CostUSD != nil {
		p.cost += *e.CostUSD
	}
}

// episode is the line of a finished job.
func (p *progress) episode(j schemas.Job, e Episode) string {
	of := ""
	if p.start.ToDo > 0 {
		of = fmt.Sprintf("/%d", p.start.ToDo)
	}
	line := fmt.Sprintf("  [%d%s] %-10s %s#%d  %s", p.done, of, e.Outcome, j.Instance, j.Attempt, e.ExitReason)
	if e.Steps > 0 {
		line += fmt.Sprintf(", %d steps, %s", e.Steps, took(e.Wall))
	}
	if e.CostUSD != nil && *e.CostUSD > 0 {
		line += ", " + usd(*e.CostUSD)
	}
	if e.Cause != "" {
		line += ": " + firstLine(e.Cause)
	}
	return line
}

func (p *progress) retried(j schemas.Job, cause error) string {
	delete(p.running, j.EpisodeID)
	return fmt.Sprintf("  retry  %s#%d: %s", j.Instance, j.Attempt, firstLine(cause.Error()))
}

// status says how far the run is, the important first.
func (p *progress) status() string {
	elapsed := p.Now().Sub(p.begun)
	parts := []string{number(p.done) + " done"}
	if p.start.ToDo > 0 {
		parts[0] = fmt.Sprintf("%s/%s done", number(p.done), number(p.start.ToDo))
	}
	for _, o := range schemas.Outcomes {
		if n := p.outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", number(n), o))
		}
	}
	parts = append(parts, fmt.Sprintf("%d running", len(p.running)), took(elapsed.Round(time.Second)))
	if p.done > 0 && p.done < p.start.ToDo {
		left := time.Duration(float64(elapsed) / float64(p.done) * float64(p.start.ToDo-p.done))
		parts = append(parts, "about "+took(left.Round(time.Second))+" left")
	}
	if p.cost > 0 {
		parts = append(parts, usd(p.cost))
	}
	return "  " + strings.Join(parts, ", ")
}

// Plain writes one line per finished or retried job, and a status line at most
// once per Every while jobs move: progress for logs and pipes.
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
	p.due()
}

// JobRetried implements Observer.
func (p *Plain) JobRetried(j schemas.Job, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.W, p.retried(j, cause))
}

// JobFinished implements Observer.
func (p *Plain) JobFinished(j schemas.Job, e Episode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished(j, e)
	fmt.Fprintln(p.W, p.episode(j, e))
	p.due()
}

// RunFinished implements Observer.
func (p *Plain) RunFinished(Report) {}

// due writes the status line if it is time.
func (p *Plain) due() {
	if now := p.Now(); now.Sub(p.last) >= p.Every {
		p.last = now
		fmt.Fprintln(p.W, p.status())
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
