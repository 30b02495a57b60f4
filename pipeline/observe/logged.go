package observe

import (
	"log/slog"

	"github.com/tracesmith/tracesmith/schemas"
)

// Logged is an observer that logs all events and passes them on.
type Logged struct {
	Observer
	Log *slog.Logger
}

// RunStarted implements Observer.
func (l Logged) RunStarted(s Start) {
	l.Log.Info("run started", "run", s.RunID, "selected", s.Selected, "reused", s.Reused, "to_do", s.ToDo, "workers", s.Workers)
	l.Observer.RunStarted(s)
}

// JobStarted implements Observer.
func (l Logged) JobStarted(j schemas.Job, delivery int) {
	l.job(j).Info("episode started", "delivery", delivery)
	l.Observer.JobStarted(j, delivery)
}

// Step implements Observer.
func (l Logged) Step(j schemas.Job, s schemas.Step) {
	log := l.job(j).With("turn", s.Turn, "call", s.Call, "env_ms", s.EnvMillis)
	if s.ToolCall != nil {
		log = log.With("tool", s.ToolCall.Name)
	}
	if s.Observation != nil && s.Observation.IsError {
		log = log.With("error_class", s.Observation.ErrorClass)
	}
	log.Debug("step")
	l.Observer.Step(j, s)
}

// JobRetried implements Observer.
func (l Logged) JobRetried(j schemas.Job, cause error) {
	l.job(j).Warn("episode will be retried", "error", cause)
	l.Observer.JobRetried(j, cause)
}

// JobFinished implements Observer.
func (l Logged) JobFinished(j schemas.Job, e Episode) {
	l.job(j).Info("episode ended", "outcome", e.Outcome, "exit_reason", e.ExitReason, "steps", e.Steps, "wall", e.Wall, "cause", e.Cause)
	l.Observer.JobFinished(j, e)
}

// RunFinished implements Observer.
func (l Logged) RunFinished(r Report) {
	l.Log.Info("run ended", "run", r.RunID, "verdict", r.Verdict, "exit_code", r.ExitCode, "error", r.Error)
	l.Observer.RunFinished(r)
}

func (l Logged) job(j schemas.Job) *slog.Logger {
	return l.Log.With("episode", j.EpisodeID, "task", j.Instance, "attempt", j.Attempt)
}
