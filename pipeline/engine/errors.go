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

// ErrLeaseLost is the cancellation cause of a lease's context, and the error of
// every operation of an owner whose job another owner has taken over.
var ErrLeaseLost = errors.New("lease lost: another worker owns the job now")

// LockedError says that a living process holds the run directory.
type LockedError struct {
	Dir    string
	What   string // what is locked; "" = run directory
	Holder string // "pid 42 on host, since ..."; "" if unknown
}

func (e *LockedError) Error() string {
	holder := cmp.Or(e.Holder, "another process")
	return fmt.Sprintf("%s %s is in use by %s", cmp.Or(e.What, "run directory"), e.Dir, holder)
}

// ExitCode is the process exit code for this error.
func (e *LockedError) ExitCode() int { return 9 }

// Hint says what to do about it.
func (e *LockedError) Hint() string {
	if e.What == "run" {
		return "wait for it to end or stop it; if it is gone, run the same command again: it takes over the run when the lease (engine.lease, at least 30 seconds) expires"
	}
	return "wait for it to end or stop it, or choose another --run-dir"
}

// DiskFullError says that the engine's file system has less free space than the
// minimum for starting work.
type DiskFullError struct {
	Dir         string
	Free, Floor uint64 // bytes
	Err         error  // the failure this explains, or nil
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("disk full: %s has %d MiB free, but %d MiB are needed", e.Dir, e.Free>>20, e.Floor>>20)
}

func (e *DiskFullError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *DiskFullError) ExitCode() int { return 2 }

// Hint says what to do about it.
func (e *DiskFullError) Hint() string {
	return "free some space and run the same command again: it resumes and loses nothing"
}

// FullBudgetError says that the budget of a run exceeds the servers' maximum
// message size: too many episodes run at once.
type FullBudgetError struct{ Size, Limit int64 } // bytes

func (e *FullBudgetError) Error() string {
	return fmt.Sprintf("the budget of the running episodes takes %d bytes, but the NATS servers accept at most %d bytes in one message", e.Size, e.Limit)
}

// ExitCode is the process exit code for this error.
func (e *FullBudgetError) ExitCode() int { return 2 }

// Hint says what to do about it.
func (e *FullBudgetError) Hint() string {
	return "raise max_payload of the servers, or run fewer episodes at once (engine.in_flight, slots of workers), and run the same command again: it resumes"
}

// StuckError says that the engine did not answer within its deadlines although the
// disk has free space. A stream that ran into a full disk stays stuck until the
// engine restarts.
type StuckError struct {
	Op    string
	Place string // of external servers, "" if embedded
	Err   error
}

func (e *StuckError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("the NATS servers at %s do not answer: %s: %v", e.Place, e.Op, e.Err)
	}
	return fmt.Sprintf("the job engine does not answer: %s: %v", e.Op, e.Err)
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
		return "check that the servers run with JetStream and that more than half of the cluster's nodes are up, and run the same command again: it resumes"
	}
	return "run the same command again: the engine restarts and the run resumes"
}

// AccessError says that external servers reject the credentials. It never contains
// a secret.
type AccessError struct {
	Place  string
	Why    string
	Remedy string // "" if no credentials were given
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("the NATS servers at %s cannot be used: %s", e.Place, e.Why)
}

// ExitCode is the process exit code for this error.
func (e *AccessError) ExitCode() int { return 4 }

// Hint says what to do about it.
func (e *AccessError) Hint() string {
	return cmp.Or(e.Remedy, "set nats.creds to a credentials file, or put a user and a password in nats.url; for TLS set nats.tls.ca, nats.tls.cert and nats.tls.key")
}

// UntrustedError says that the servers answered but TLS could not verify them.
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

// OutdatedError says that the servers lack a feature that the engine needs.
type OutdatedError struct{ Place, Version string }

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the NATS servers at %s have version %s, which does not support atomic batches", e.Place, e.Version)
}

// ExitCode is the process exit code for this error.
func (e *OutdatedError) ExitCode() int { return 7 }

// Hint says what to do about it.
func (e *OutdatedError) Hint() string { return "upgrade all nodes to nats-server 2.12 or later" }

// UnreachableError says that no external server answered.
type UnreachableError struct {
	Place  string
	Waited time.Duration
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no NATS server at %s is reachable (waited %s): %v", e.Place, e.Waited.Round(time.Second), e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// ExitCode is the process exit code for this error.
func (e *UnreachableError) ExitCode() int { return 7 }

// Hint says what to do about it.
func (e *UnreachableError) Hint() string {
	return "check the URL, that the servers run with JetStream, and nats.tls.ca if they use TLS"
}

// noAnswer reports whether err means that no answer came: the request may or may
// not have succeeded.
func noAnswer(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// conflict reports whether err is a lost compare-and-swap.
func conflict(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
