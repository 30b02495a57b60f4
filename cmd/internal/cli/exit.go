package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/sinks"
)

// Exit codes: the table scripts rely on.
const (
	ExitOK        = 0
	ExitBug       = 1   // unexpected failure
	ExitUsage     = 2   // usage, configuration or unusable output directory
	ExitGaps      = 3   // finished with infrastructure errors or missing tasks
	ExitAuth      = 4   // credentials missing or refused
	ExitBudget    = 5   // stopped by a budget; Resumable
	ExitGate      = 6   // a check was made and not passed
	ExitPreflight = 7   // unreachable model or unusable sandbox: nothing was billed
	ExitStorage   = 8   // remote storage failed; local data complete
	ExitLocked    = 9   // run directory held by a live process
	ExitHangup    = 129 // SIGHUP
	ExitInt       = 130 // SIGINT
	ExitPipe      = 141 // SIGPIPE: nobody reads the output any more
	ExitTerm      = 143 // SIGTERM
)

// Error is a failure with its exit code and the next thing to try.
type Error struct {
	Code int
	Try  string // the next thing to try; "" where the message says it
	Err  error
	// Stands: being stopped is how the command ends, and this is how it went.
	Stands bool
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitCode and Hint are read off any error that has them, ours or another
// package's.
func (e *Error) ExitCode() int { return e.Code }

// Hint is the next thing to try.
func (e *Error) Hint() string { return e.Try }

// Usage marks err as the caller's mistake, unless it says itself what it is.
func Usage(err error) error {
	if err == nil || CodeOf(err) != ExitBug {
		return err
	}
	return &Error{Code: ExitUsage, Err: err}
}

// shell is a command that can be pasted.
var shell = shellwords.Command

// CodeOf maps an error to the exit code of the table, once, at the top.
func CodeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	switch llms.ClassOf(err) {
	case llms.ClassAuth:
		return ExitAuth
	case llms.ClassQuota:
		return ExitBudget
	case llms.ClassNotFound, llms.ClassUnreachable, llms.ClassRefused:
		return ExitPreflight
	}
	switch {
	case errors.Is(err, sinks.ErrDenied):
		return ExitAuth
	case errors.Is(err, sinks.ErrUnsafe):
		return ExitStorage
	case errors.Is(err, context.Canceled):
		return ExitInt
	case unwritable(err):
		return ExitUsage
	}
	return ExitBug
}

// unwritable says that a disk took no more, or takes nothing.
func unwritable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// describe prints an error as one message with its remedy.
func Describe(err error) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	fmt.Fprintf(&b, "tracesmith: %s\n", lines[0])
	for _, l := range lines[1:] {
		fmt.Fprintf(&b, "            %s\n", l)
	}
	var hinted interface{ Hint() string }
	switch {
	case errors.As(err, &hinted) && hinted.Hint() != "":
		fmt.Fprintf(&b, "       try: %s\n", hinted.Hint())
	case unwritable(err):
		b.WriteString("       try: free some space, or name another place, and start the same command again\n")
	}
	return b.String()
}
