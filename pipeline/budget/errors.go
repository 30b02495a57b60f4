package budget

import "errors"

// RunFlag is the command-line flag that sets the cost limit of a run.
const RunFlag = "--max-cost"

// ExhaustedError says that the budget of a run is used up: the run stops and can be resumed.
type ExhaustedError struct{ Why string }

func (e *ExhaustedError) Error() string { return "cost budget is used up: " + e.Why }

// ExitCode is the process exit code for this error.
func (e *ExhaustedError) ExitCode() int { return 5 }

// Hint says what to do about it.
func (e *ExhaustedError) Hint() string {
	return "raise " + RunFlag + " and start the same command again: it resumes"
}

// Exhausted reports whether err says that the budget of the run is used up.
func Exhausted(err error) bool {
	_, ok := errors.AsType[*ExhaustedError](err)
	return ok
}
