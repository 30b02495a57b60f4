package rundir

import "errors"

// Error says that a run directory cannot be used.
type Error struct {
	Err    error
	Remedy string // "" if the message says what to do
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *Error) ExitCode() int { return 2 }

// Hint says what to do about it.
func (e *Error) Hint() string { return e.Remedy }

// withCode turns an error without an exit code into an *Error for a directory that cannot be
// written.
func withCode(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return err
	}
	return &Error{Err: err, Remedy: "choose a --run-dir that can be written"}
}
