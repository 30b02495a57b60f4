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

// episode returns the line of a finished job.
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

// status returns the status line, with the most important figures first.
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

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
