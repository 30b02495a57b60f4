package observe

// Sentences about what running jobs do and wait for.

import (
	"fmt"
	"strings"
	"time"
)

// silence is how long a model call may take before Waits mentions it.
const silence = 30 * time.Second

// Text says what a job does, in a few words.
func (r Running) Text() string {
	switch r.Doing {
	case InSandboxStart:
		return "starting sandbox"
	case InAgent:
		return "agent"
	case InBudget:
		return "waits for budget"
	case InRateLimit:
		return "waits for rate limit"
	case InModel:
		return "waits for model"
	case InCallRetry:
		return "waits to retry call"
	case InRecord:
		return "recording"
	case InTool:
		return "running " + r.Detail
	case InTests:
		return "running tests"
	case InStaging:
		return "storing episode"
	case InWorker:
		return "on a worker"
	}
	return string(r.Doing)
}

// TurnText returns the turn of a job, such as "turn 3/40"; "" before the first turn.
func (r Running) TurnText() string {
	switch {
	case r.Turn == 0:
		return ""
	case r.MaxTurns == 0:
		return fmt.Sprintf("turn %d", r.Turn)
	}
	return fmt.Sprintf("turn %d/%d", r.Turn, r.MaxTurns)
}

// doingCounts counts the running jobs by what they do, such as "1 bash, 2 model".
func doingCounts(a Activity) string {
	counts := map[string]int{}
	for _, r := range a.Running {
		name := strings.ReplaceAll(string(r.Doing), "_", " ")
		if r.Doing == InTool {
			name = r.Detail
		}
		counts[name]++
	}
	var parts []string
	for _, name := range sorted(counts) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// Waits returns sentences about jobs that wait unusually long for a model, and about jobs that wait
// for a retry. callTimeout is the time limit of a model call; 0: unknown.
func (a Activity) Waits(callTimeout time.Duration, now time.Time) []string {
	var out []string
	if a.Failure != "" {
		out = append(out, "the run stops: "+a.Failure)
	}
	if a.Idle {
		out = append(out, "no worker executes this run: start one with tracesmith worker --nats URL")
	}
	if line := a.modelWait(callTimeout, now); line != "" {
		out = append(out, line)
	}
	var calls int
	var cause string
	for _, r := range a.Running {
		if r.Doing == InCallRetry {
			calls++
			cause = r.Detail
		}
	}
	if calls > 0 {
		out = append(out, fmt.Sprintf("%s for the next try of a model call: %s", waits(calls, "worker"), cause))
	}
	if n := len(a.Retrying); n > 0 {
		next := a.Retrying[0]
		line := fmt.Sprintf("%s for a retry: %s#%d", waits(n, "episode"), next.Instance, next.Attempt)
		if left := next.Due.Sub(now); left > 0 {
			line += " in " + duration(left.Round(time.Second))
		}
		if n > 1 {
			line += fmt.Sprintf(", then %d more", n-1)
		}
		out = append(out, line)
	}
	return out
}

// modelWait returns a sentence about the jobs whose model call is silent, or "".
func (a Activity) modelWait(callTimeout time.Duration, now time.Time) string {
	n, since := 0, now
	for _, r := range a.Running {
		if r.Doing == InModel && now.Sub(r.Since) >= silence {
			n++
			if r.Since.Before(since) {
				since = r.Since
			}
		}
	}
	if n == 0 {
		return ""
	}
	line := fmt.Sprintf("%s for the model server, %s so far", waits(n, "worker"), age(now.Sub(since)))
	if callTimeout > 0 {
		line += fmt.Sprintf(" (llm.timeout: %s)", duration(callTimeout))
	}
	return line
}

// waits returns "1 worker waits" or "2 workers wait".
func waits(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " waits"
	}
	return plural(n, noun) + " wait"
}
