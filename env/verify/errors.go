package verify

import (
	"errors"
	"fmt"
)

// Reasons why a task cannot be verified. A TaskError wraps one of them.
var (
	ErrNoTests      = errors.New("task without tests")
	ErrNothingToFix = errors.New("nothing to fix")
	ErrNotCollected = errors.New("the tests cannot be collected")
	ErrTooSlow      = errors.New("the tests run out of time")
	ErrGoldFails    = errors.New("the gold patch fixes nothing")
	ErrUntrusted    = errors.New("the results of the tests cannot be trusted")
	ErrHiddenTests  = errors.New("the hidden tests do not fit the repository")
)

// TaskError says why no patch for a task can be verified, and what to do about it.
type TaskError struct {
	Instance string
	Kind     error // one of the errors above
	Detail   string
	Remedy   string
}

func (e *TaskError) Error() string {
	return fmt.Sprintf("task %s: %s: %s", e.Instance, e.Summary(), e.Remedy)
}

// Summary returns the error without the task's name and the remedy.
func (e *TaskError) Summary() string {
	if e.Detail == "" {
		return e.Kind.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Kind, e.Detail)
}

func (e *TaskError) Unwrap() error { return e.Kind }
