package pipeline

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/sinks"
)

// StopError stops a whole run, because no other job could succeed either. Packages engine,
// budget and rundir have errors with the same methods.
type StopError struct {
	Code   int    // process exit code
	Remedy string // what to do, "" if the message says it
	Err    error
}

func (e *StopError) Error() string { return e.Err.Error() }

func (e *StopError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *StopError) ExitCode() int { return e.Code }

// Hint says what the user can do about the error.
func (e *StopError) Hint() string { return e.Remedy }

// fatal is an error that stops a whole run.
type fatal interface {
	error
	ExitCode() int
	Hint() string
}

// TaskError says that a job cannot succeed because of its task, so that a retry would not help.
// The run gives the job up with the outcome infra and continues with the other jobs.
type TaskError struct{ Err error }

func (e *TaskError) Error() string { return e.Err.Error() }

func (e *TaskError) Unwrap() error { return e.Err }

const resumes = "start the same command again: it resumes"

// ErrOutdated says that a worker cannot tell whether a job is selected, because the run has got a
// new coordinator.
var ErrOutdated = errors.New("the run has a new coordinator")

// ErrDrained is the error of a run that stopped taking jobs on request before all had run.
var ErrDrained = &StopError{Code: 130, Err: errors.New("stopped as requested; running episodes finished"), Remedy: resumes}

// Interrupted returns the error of a run whose context ctx was canceled.
func Interrupted(ctx context.Context) error {
	return &StopError{Code: 130, Err: fmt.Errorf("interrupted: %w", context.Cause(ctx)), Remedy: resumes}
}

// WithExitCode returns err with exit code 1, an internal failure. It returns nil, cancellations
// and errors that have an exit code unchanged.
func WithExitCode(err error) error {
	if _, ok := errors.AsType[fatal](err); ok || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &StopError{Code: 1, Err: err, Remedy: resumes}
}

// asFatal returns err as an error that stops the whole run, or nil if it concerns only one job.
// answered says whether a model has answered in this run. If none has, an unreachable server
// is taken for a configuration error and stops the run.
func asFatal(err error, answered bool) fatal {
	if f, ok := errors.AsType[fatal](err); ok {
		return f
	}
	if f, ok := errors.AsType[*agents.FatalError](err); ok {
		switch f.Class {
		case llms.ClassAuth:
			return &StopError{Code: 4, Err: err, Remedy: "check the API key of the model server"}
		case llms.ClassQuota:
			return &StopError{Code: 5, Err: err, Remedy: "the provider's account has no credit left; " + resumes}
		}
		if e, ok := errors.AsType[*llms.Error](err); ok && e.Scripted {
			return &StopError{Code: 7, Err: err, Remedy: "fix the script of tracesmith mock (docs/mock.md), and start the same command again"}
		}
		return &StopError{Code: 7, Err: err, Remedy: modelRemedy(f.Class)}
	}
	switch {
	case llms.ClassOf(err) == llms.ClassUnreachable && !answered:
		return &StopError{Code: 7, Err: err, Remedy: "check the base URL and that the model server runs"}
	case errors.Is(err, sinks.ErrDenied):
		return &StopError{Code: 8, Err: err, Remedy: "check the credentials of the staging store; " + resumes}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS):
		return &StopError{Code: 2, Err: err, Remedy: "free some space; " + resumes}
	}
	return nil
}

// PreflightError returns an error that was found before the first job with the exit code and the
// remedy with which it stops a run.
func PreflightError(err error) error {
	if f := asFatal(err, false); f != nil {
		return f
	}
	return &StopError{Code: 7, Err: err}
}

// modelRemedy says what to do if the model server refuses or fails requests.
func modelRemedy(class llms.Class) string {
	switch class {
	case llms.ClassNotFound:
		return "check model name and base URL; tracesmith models list --base-url URL shows what the server has"
	case llms.ClassBadRequest:
		return "the server does not take this request: see docs/wire.md for the settings of llm.with that change what is sent"
	}
	return "check the base URL and that the model server runs"
}

// secretAsTaskError turns a *redact.Found into a *TaskError: a retry would find the same secret
// in the recorded steps. It returns any other error unchanged.
func secretAsTaskError(err error) error {
	if _, ok := errors.AsType[*redact.Found](err); ok {
		return &TaskError{err}
	}
	return err
}

// Names of the stages of a job, for dead letters.
const (
	stageRollout   = "rollout"
	stageGrade     = "grade"
	stageNormalise = "normalise"
	stageStage     = "stage"
)

// Error classes of jobs that are given up for a reason other than an infrastructure failure.
const (
	// ClassNotSelected is the class of jobs that only an earlier, larger selection contained.
	ClassNotSelected = "not_selected"
	// classSecret is the class of episodes that cannot be staged because they contain a secret.
	classSecret = "secret_found"
)

// stageError records in which stage a job failed. Its message is that of err.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// stagePanic is a panic in a stage of a job. Only this job fails.
type stagePanic struct {
	value any
	stack []byte
}

func (p *stagePanic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// messageOf returns the message of the error with which a job failed, without the names of the layers
// that passed it on. The log has the whole error.
func messageOf(err error) string {
	if e, ok := errors.AsType[*llms.Error](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*agents.InfraError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// stageOf returns the stage in which a job failed.
func stageOf(err error) string {
	if e, ok := errors.AsType[*stageError](err); ok {
		return e.stage
	}
	return stageRollout
}

// classOf returns the error class of a failed job, for dead letters and reports.
func classOf(err error) string {
	if e, ok := errors.AsType[*agents.InfraError](err); ok {
		if class := llms.ClassOf(err); class != "" {
			return "llm_" + string(class)
		}
		return e.Exit
	}
	if _, ok := errors.AsType[*stagePanic](err); ok {
		return "panic"
	}
	if _, ok := errors.AsType[*redact.Found](err); ok {
		return classSecret
	}
	if _, ok := errors.AsType[*TaskError](err); ok {
		return "task"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "infra"
}

// ignoreLost returns nil for engine.ErrLeaseLost: another worker has the lease and settles the
// job.
func ignoreLost(err error) error {
	if errors.Is(err, engine.ErrLeaseLost) {
		return nil
	}
	return err
}
