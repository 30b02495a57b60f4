package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrLeaseLost is the cancellation cause of a lease's context, and the answer
// to everything an owner tries after another one took over its job.
var ErrLeaseLost = errors.New("lease lost: another worker owns the job now")

// LockedError says that a living process holds the run directory.
type LockedError struct {
	Dir    string
	What   string // it is; "" = run directory
	Holder string // "pid 42 on host, since ..."; "" if it left no note
}

func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("%s %s is in use by %s", cmp.Or(e.What, "run directory"), e.Dir, holder)
}

// ExitCode is the process exit code for this error.
func (e *LockedError) ExitCode() int { return 9 }

// Hint says what to do about it.
func (e *LockedError) Hint() string {
	if e.What == "run" {
		return "wait for it to end or stop it; if it is gone, the same command takes the run over once it was not heard of for a lease (engine.lease, 30 seconds at least)"
	}
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

// FullBudgetError says that the budget of a run has grown beyond what servers accept in one
// message: too many episodes run at once.
type FullBudgetError struct{ Size, Limit int64 } // bytes

func (e *FullBudgetError) Error() string {
	return fmt.Sprintf("the budget of the run takes %d bytes for the episodes that are under way, and the NATS servers take %d in one message", e.Size, e.Limit)
}

// ExitCode is the process exit code for this error.
func (e *FullBudgetError) ExitCode() int { return 2 }

// Hint says what to do about it.
func (e *FullBudgetError) Hint() string {
	return "raise max_payload of the servers, or run fewer episodes at once (engine.in_flight, slots of workers), and start the same command again: it resumes"
}

// StuckError says that the engine gave no answer within its deadlines although
// there is room on the disk. A stream that met a full disk stays in this state
// until the engine restarts.
type StuckError struct {
	Op    string
	Place string // of external servers, "" if embedded
	Err   error
}

func (e *StuckError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("the NATS servers at %s do not answer: %s: %v", e.Place, e.Op, e.Err)
	}
	return fmt.Sprintf("job engine does not answer: %s: %v", e.Op, e.Err)
}

func (e *StuckError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *StuckError) ExitCode() int {
	if e.Place != "" {
		return 7
	}
	return 1
}

// Hint says what to do about it.
func (e *StuckError) Hint() string {
	if e.Place != "" {
		return "see that the servers run with JetStream and more than half of the cluster's nodes are up, and start the same command again: it resumes"
	}
	return "start the same command again: the engine restarts and the run resumes"
}

// AccessError says that external servers let nobody in with these credentials.
// It never holds a secret.
type AccessError struct {
	Place  string
	Why    string
	Remedy string // "" where nothing was shown to them
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("the NATS servers at %s cannot be used: %s", e.Place, e.Why)
}

// ExitCode is the process exit code for this error.
func (e *AccessError) ExitCode() int { return 4 }

// Hint says what to do about it.
func (e *AccessError) Hint() string {
	return cmp.Or(e.Remedy, "name the file of the user's credentials with nats.creds, or a user and a password in nats.url, and the files of TLS with nats.tls.ca, nats.tls.cert and nats.tls.key")
}

// UntrustedError says that servers answered and are not taken for those that were
// meant.
type UntrustedError struct {
	Place  string
	Remedy string
	Err    error
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the NATS servers at %s are not trusted: %v", e.Place, e.Err)
}

func (e *UntrustedError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *UntrustedError) ExitCode() int { return 7 }

// Hint says what to do about it.
func (e *UntrustedError) Hint() string { return e.Remedy }

// OutdatedError says that servers lack what the engine needs.
type OutdatedError struct{ Place, Version string }

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the NATS servers at %s are of version %s, which knows no atomic batches", e.Place, e.Version)
}

// ExitCode is the process exit code for this error.
func (e *OutdatedError) ExitCode() int { return 7 }

// Hint says what to do about it.
func (e *OutdatedError) Hint() string { return "have all nodes run nats-server 2.12 or later" }

// UnreachableError says that no external server answered.
type UnreachableError struct {
	Place  string
	Waited time.Duration
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no NATS server at %s can be reached (waited %s): %v", e.Place, e.Waited.Round(time.Second), e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *UnreachableError) ExitCode() int { return 7 }

// Hint says what to do about it.
func (e *UnreachableError) Hint() string {
	return "check the URL, that the servers run with JetStream, and nats.tls.ca where they use TLS"
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
