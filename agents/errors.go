package agents

import (
	"fmt"

	"github.com/tracesmith/tracesmith/llms"
)

// InfraError is a failure that is ours, not the agent's: the job may be run
// again with its id unchanged. Exit is the exit reason to record when it is not.
type InfraError struct {
	Exit string // schemas.Exit*
	Err  error
}

func (e *InfraError) Error() string { return fmt.Sprintf("%s: %v", e.Exit, e.Err) }

func (e *InfraError) Unwrap() error { return e.Err }

// FatalError stops the whole run: no other job could do better. Class says
// which exit code it is (cli: auth 4, quota 5, not_found and bad_request 7).
type FatalError struct {
	Class llms.Class
	Err   error
}

func (e *FatalError) Error() string { return e.Err.Error() }

func (e *FatalError) Unwrap() error { return e.Err }
