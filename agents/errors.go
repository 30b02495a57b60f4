package agents

import (
	"fmt"

	"github.com/tracesmith/tracesmith/llms"
)

// InfraError is a failure that the agent did not cause. The job may be run again with the
// same id.
type InfraError struct {
	Exit string // schemas.Exit*, the exit reason to record if the job is not run again
	Err  error
}

func (e *InfraError) Error() string { return fmt.Sprintf("%s: %v", e.Exit, e.Err) }

func (e *InfraError) Unwrap() error { return e.Err }

// FatalError stops the whole run, because all other jobs would fail the same way. Class
// decides the exit code (auth 4, quota 5, not_found and bad_request 7).
type FatalError struct {
	Class llms.Class
	Err   error
}

func (e *FatalError) Error() string { return e.Err.Error() }

func (e *FatalError) Unwrap() error { return e.Err }
