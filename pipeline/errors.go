package pipeline

import (
	"context"
	"errors"
	"syscall"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/sinks"
)

// StopError stops a whole run: no other job could do better. The engine's
// errors offer the same two methods.
type StopError struct {
	Code   int    // process exit code (cli-viewer-llm.md §3.6)
	Remedy string // what to do, "" if the message says it
	Err    error
}

func (e *StopError) Error() string { return e.Err.Error() }

func (e *StopError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *StopError) ExitCode() int { return e.Code }

// Hint says what to do about it.
func (e *StopError) Hint() string { return e.Remedy }

// fatal is what StopError and the engine's errors have in common.
type fatal interface {
	error
	ExitCode() int
	Hint() string
}

// TaskError says that a job cannot come to an end because of its task: trying
// again would not help. The job is given up as infra, the others go on.
type TaskError struct{ Err error }

func (e *TaskError) Error() string { return e.Err.Error() }

func (e *TaskError) Unwrap() error { return e.Err }

const resumes = "start the same command again: it resumes"

// asFatal finds the reason to stop the whole run in err, if there is one.
// answered says that a model has answered in this run: before that, an
// unreachable host is a matter of configuration.
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
			return &StopError{Code: 7, Err: err, Remedy: "mend the script of tracesmith mock (docs/mock.md), and start the same command again"}
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

// modelRemedy is what to do about a model server that cannot be used.
func modelRemedy(class llms.Class) string {
	switch class {
	case llms.ClassNotFound:
		return "check model name and base URL; tracesmith models list --base-url URL shows what the server has"
	case llms.ClassRefused:
		return "the server does not take this request: see docs/wire.md for the settings of llm.with that change what is sent"
	}
	return "check the base URL and that the model server runs"
}

// held gives a job up whose episode cannot leave: it would be the same again.
func held(err error) error {
	if _, ok := errors.AsType[*redact.Found](err); ok {
		return &TaskError{err}
	}
	return err
}

// Stages of a job, as dead letters name them.
const (
	stageRollout   = "rollout"
	stageGrade     = "grade"
	stageNormalise = "normalise"
	stageStage     = "stage"
)

// classSecret is that of an episode that holds a secret and cannot be staged.
const classSecret = "secret_found"

// stageError says in which stage a job failed. It has no words of its own.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// stageOf is the stage of a failure.
func stageOf(err error) string {
	if e, ok := errors.AsType[*stageError](err); ok {
		return e.stage
	}
	return stageRollout
}

// classOf is the short name of an infrastructure failure, for records.
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

// release settles a lease that somebody else may have taken.
func release(err error) error {
	if errors.Is(err, engine.ErrLeaseLost) {
		return nil
	}
	return err
}
