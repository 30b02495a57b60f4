package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrLeaseLost is the cancellation cause of a lease's context, and the answer
// to everything an owner tries after another one took over its job.
var ErrLeaseLost = errors.New("lease lost: another worker owns the job now")

// LockedError says that a living process holds the run directory.
type LockedError struct {
	Dir    string
	Holder string // "pid 42 on host, since ..."; "" if it left no note
}

func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("run directory %s is in use by %s", e.Dir, holder)
}

// ExitCode is the process exit code for this error.
func (e *LockedError) ExitCode() int { return 9 }

// Hint says what to do about it.
func (e *LockedError) Hint() string {
	return "wait for it to end or stop it, or choose another --run-dir"
}

// DiskFullError says that the file system under the engine has less room than
// the floor below which no work is started.
type DiskFullError struct {
	Dir         string
	Free, Floor uint64 // bytes
	Err         error  // what failed because of it, if anything did
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("disk full: %s has %d MiB free, %d MiB are needed", e.Dir, e.Free>>20, e.Floor>>20)
}

func (e *DiskFullError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *DiskFullError) ExitCode() int { return 2 }

// Hint says what to do about it.
func (e *DiskFullError) Hint() string {
	return "free some space and start the same command again: it resumes, nothing acknowledged is lost"
}

// StuckError says that the engine gave no answer within its deadlines although
// there is room on the disk. A stream that met a full disk stays in this state
// until the engine restarts.
type StuckError struct {
	Op  string
	Err error
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("job engine does not answer: %s: %v", e.Op, e.Err)
}

func (e *StuckError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *StuckError) ExitCode() int { return 1 }

// Hint says what to do about it.
func (e *StuckError) Hint() string {
	return "start the same command again: the engine restarts and the run resumes"
}

// silent tells whether err means that no answer came: the request may or may
// not have been carried out.
func silent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// conflict tells whether err is a lost compare-and-swap.
func conflict(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
