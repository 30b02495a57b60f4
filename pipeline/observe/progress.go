package observe

// Counts and lines that Plain and Live share.

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// progress counts the jobs of a run.
type progress struct {
	W   io.Writer
	Now func() time.Time

	mu       sync.Mutex
	start    Start
	begun    time.Time
	last     time.Time       // when Plain last wrote the status line
	running  map[string]bool // by episode ID
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
	if s.Selected == 0 { // a worker on a cluster does not know the number of jobs
		fmt.Fprintf(p.W, "run %s: joined with %d slots, staging in %s\n", s.RunID, s.Workers, s.RunDir)
		return
	}
	fmt.Fprintf(p.W, "run %s: %s selected, %s reused, %s to run on %d workers, in %s\n",
		s.RunID, Number(s.Selected), Number(s.Reused), Number(s.ToDo), s.Workers, s.RunDir)
}

func (p *progress) countFinished(j schemas.Job, e Episode) {
	delete(p.running, j.EpisodeID)
	p.done++
	p.outcomes[e.Outcome]++
	if e.CostUSD != nil {
		p.cost += *e.CostUSD
	}
}

func (p *progress) episodeLine(j schemas.Job, e Episode) string {
	total := ""
	if p.start.ToDo > 0 {
		total = fmt.Sprintf("/%d", p.start.ToDo)
	}
	line := fmt.Sprintf("  [%d%s] %-10s %s#%d  %s", p.done, total, e.Outcome, j.Instance, j.Attempt, e.ExitReason)
	if e.Steps > 0 {
		line += fmt.Sprintf(", %d steps, %s", e.Steps, duration(e.Wall))
	}
	if e.CostUSD != nil && *e.CostUSD > 0 {
		line += ", " + USD(*e.CostUSD)
	}
	if e.Cause != "" {
		line += ": " + firstLine(e.Cause)
	}
	return line
}

// retryLine returns the line of a job that failed and is queued again.
func (p *progress) retryLine(j schemas.Job, cause error) string {
	delete(p.running, j.EpisodeID)
	return fmt.Sprintf("  retry  %s#%d: %s", j.Instance, j.Attempt, firstLine(cause.Error()))
}

// statusLine returns the status line, with the most important numbers first.
func (p *progress) statusLine() string {
	elapsed := p.Now().Sub(p.begun)
	parts := []string{Number(p.done) + " done"}
	if p.start.ToDo > 0 {
		parts[0] = fmt.Sprintf("%s/%s done", Number(p.done), Number(p.start.ToDo))
	}
	for _, o := range schemas.Outcomes {
		if n := p.outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Number(n), o))
		}
	}
	parts = append(parts, fmt.Sprintf("%d running", len(p.running)), duration(elapsed.Round(time.Second)))
	if p.done > 0 && p.done < p.start.ToDo {
		remaining := time.Duration(float64(elapsed) / float64(p.done) * float64(p.start.ToDo-p.done))
		parts = append(parts, "about "+duration(remaining.Round(time.Second))+" left")
	}
	if p.cost > 0 {
		parts = append(parts, USD(p.cost))
	}
	return "  " + strings.Join(parts, ", ")
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
