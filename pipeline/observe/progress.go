package observe

// Counts and lines that Plain and Live share.

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// progress counts the jobs of a run.
type progress struct {
	w io.Writer

	mu       sync.Mutex
	start    Start
	begun    time.Time
	outcomes map[string]int
	done     int
	cost     float64         // of the ended jobs
	said     map[string]bool // causes of failures that were printed

	ending             rate // of jobs
	prompt, completion rate // tokens

	quit  chan struct{} // ends the ticks; nil: there are none
	ticks sync.WaitGroup
}

func newProgress(w io.Writer) progress {
	return progress{
		w: w, outcomes: map[string]int{}, said: map[string]bool{},
		ending: rate{span: 15 * time.Minute}, prompt: rate{span: time.Minute}, completion: rate{span: time.Minute},
	}
}

// begin returns the line that announces the run.
func (p *progress) begin(s Start) string {
	if s.Activities == nil {
		s.Activities = NewActivities()
	}
	p.start, p.begun = s, time.Now()
	p.ending.perSecond(p.begun, 0)
	if s.Selected == 0 { // a worker on a cluster does not know the number of jobs
		return fmt.Sprintf("run %s: joined with %s, staging in %s", s.RunID, plural(s.Workers, "slot"), s.RunDir)
	}
	where := "the workers of the cluster"
	if s.Workers > 0 {
		where = plural(s.Workers, "worker")
	}
	return fmt.Sprintf("run %s: %s selected, %s reused, %s to run on %s, in %s",
		s.RunID, Number(s.Selected), Number(s.Reused), Number(s.ToDo), where, s.RunDir)
}

// tickEvery calls do at an interval until stopTicks is called.
func (p *progress) tickEvery(interval time.Duration, do func()) {
	p.quit = make(chan struct{})
	p.ticks.Go(func() {
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				do()
			case <-p.quit:
				return
			}
		}
	})
}

func (p *progress) stopTicks() {
	if p.quit != nil {
		close(p.quit)
		p.ticks.Wait()
		p.quit = nil
	}
}

func (p *progress) countFinished(e Episode) {
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
	line := fmt.Sprintf("  [%d%s] %-10s %s#%d", p.done, total, e.Outcome, j.Instance, j.Attempt)
	if reason := e.reason(); reason != e.Outcome {
		line += "  " + reason
	}
	if e.Steps > 0 {
		line += fmt.Sprintf(", %s, %s", plural(e.Steps, "step"), duration(e.Wall))
	}
	if e.CostUSD != nil && *e.CostUSD > 0 {
		line += ", " + USD(*e.CostUSD)
	}
	if cause := firstLine(e.Cause); cause != "" && p.isNew(cause) {
		line += ": " + cause
	}
	return line
}

// retryLine returns the line of a job that failed and is queued again, or "" if another job has
// failed for the same reason: the status line counts it.
func (p *progress) retryLine(j schemas.Job, cause error) string {
	text := firstLine(cause.Error())
	if !p.isNew(text) {
		return ""
	}
	return fmt.Sprintf("  retry  %s#%d: %s", j.Instance, j.Attempt, text)
}

// isNew reports whether a cause has not been printed yet.
func (p *progress) isNew(cause string) bool {
	if p.said[cause] {
		return false
	}
	p.said[cause] = true
	return true
}

// countParts says how many jobs are done and running. withDoing adds what the running jobs do.
func (p *progress) countParts(a Activity, withDoing bool) []string {
	parts := []string{Number(p.done) + " done"}
	if p.start.ToDo > 0 {
		parts[0] = fmt.Sprintf("%s/%s done", Number(p.done), Number(p.start.ToDo))
	}
	running := fmt.Sprintf("%d running", len(a.Running))
	if a.Stopping {
		running = fmt.Sprintf("%s, %d under way", stopWord(a), len(a.Running))
	}
	if counts := doingCounts(a); withDoing && counts != "" {
		running += " (" + counts + ")"
	}
	parts = append(parts, running)
	if n := len(a.Retrying); n > 0 && withDoing {
		parts = append(parts, plural(n, "episode")+" to retry")
	}
	return parts
}

func (p *progress) outcomeParts() (parts []string) {
	for _, o := range schemas.Outcomes {
		if n := p.outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Number(n), o))
		}
	}
	return parts
}

// timeParts says how long the run has taken and will take. The estimate needs as many ended jobs as
// run at once, and at least three.
func (p *progress) timeParts(a Activity, now time.Time) []string {
	parts := []string{duration(now.Sub(p.begun).Round(time.Second))}
	perSecond := p.ending.perSecond(now, float64(p.done))
	if perSecond > 0 && p.done >= max(3, p.start.Workers) && p.done < p.start.ToDo && !a.Stopping {
		left := time.Duration(float64(p.start.ToDo-p.done) / perSecond * float64(time.Second))
		parts = append(parts, "about "+duration(left.Round(time.Second))+" left")
	}
	return parts
}

// costParts says what the run has cost or, if it has a limit, what it has cost at most.
func (p *progress) costParts(a Activity) []string {
	cost := p.cost
	for _, r := range a.Running {
		cost += r.CostUSD
	}
	if p.start.Calls != nil {
		cost = p.start.Calls().CostUSD
	}
	switch {
	case p.start.CostLimit > 0:
		return []string{USD(p.start.Calls().Spent()) + " of " + USD(p.start.CostLimit)}
	case cost > 0:
		return []string{USD(cost)}
	}
	return nil
}

// speedParts says how many tokens the models read and write.
func (p *progress) speedParts(a Activity, now time.Time) []string {
	if p.start.Calls == nil || len(a.Running) == 0 { // before the first job, calls of earlier processes are added
		return nil
	}
	calls := p.start.Calls()
	in, out := p.prompt.perSecond(now, float64(calls.Prompt)), p.completion.perSecond(now, float64(calls.Completion))
	if in+out < 1 {
		return nil
	}
	return []string{fmt.Sprintf("%s tokens/s read, %s written", Number(int(in)), Number(int(out)))}
}

func stopWord(a Activity) string {
	if a.Canceled {
		return "canceling"
	}
	return "stopping"
}

// fit joins as many parts as fit into the columns, at least one. 0 columns are unlimited.
func fit(prefix string, parts []string, columns int) string {
	line := prefix + parts[0]
	for _, part := range parts[1:] {
		if columns > 0 && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(part) > columns {
			break
		}
		line += ", " + part
	}
	return line
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
