package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/sinks"
)

// Exit codes. Scripts rely on them.
const (
	ExitOK          = 0
	ExitFailure     = 1   // unexpected failure
	ExitUsage       = 2   // usage, configuration or unusable output directory
	ExitIncomplete  = 3   // finished with infrastructure errors or missing tasks
	ExitAuth        = 4   // credentials missing or refused
	ExitBudget      = 5   // stopped by a budget; resumable
	ExitCheckFailed = 6   // a check failed
	ExitPreflight   = 7   // unreachable model or unusable sandbox: nothing was billed
	ExitStorage     = 8   // remote storage failed; local data complete
	ExitLocked      = 9   // run directory or output used by a live process
	ExitHangup      = 129 // SIGHUP
	ExitInt         = 130 // SIGINT
	ExitPipe        = 141 // SIGPIPE: the reader of the output is gone
	ExitTerm        = 143 // SIGTERM
)

// Error is a failure with an exit code and a suggestion.
type Error struct {
	Code int
	Try  string // what to try next; "" if the message says it
	Err  error
	// OverridesSignal makes the command report this error even if a signal stopped it. Otherwise it
	// reports the signal. Servers set it, because a signal is the normal way to stop them.
	OverridesSignal bool
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns Code. CodeOf uses this method of any error that has it, and Describe
// uses Hint in the same way.
func (e *Error) ExitCode() int { return e.Code }

// Hint returns Try.
func (e *Error) Hint() string { return e.Try }

// Usage gives err the exit code ExitUsage. It returns err as it is if CodeOf returns a code
// other than ExitFailure.
func Usage(err error) error {
	if err == nil || CodeOf(err) != ExitFailure {
		return err
	}
	return &Error{Code: ExitUsage, Err: err}
}

// shell joins words into a command line that can be pasted into a shell.
var shell = shellwords.Command

// CodeOf returns the exit code for err: ExitOK for nil, ExitFailure if nothing else fits.
func CodeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	var withCode interface{ ExitCode() int }
	if errors.As(err, &withCode) {
		return withCode.ExitCode()
	}
	switch llms.ClassOf(err) {
	case llms.ClassAuth:
		return ExitAuth
	case llms.ClassQuota:
		return ExitBudget
	case llms.ClassNotFound, llms.ClassUnreachable, llms.ClassBadRequest:
		return ExitPreflight
	}
	switch {
	case errors.Is(err, sinks.ErrDenied):
		return ExitAuth
	case errors.Is(err, sinks.ErrUnsafe):
		return ExitStorage
	case errors.Is(err, context.Canceled):
		return ExitInt
	case full(err), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return ExitUsage
	}
	return ExitFailure
}

// full reports whether err comes from a full disk, an exceeded quota or a read-only
// file system.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// tryPrefix begins the line of a message that says what to do.
const tryPrefix = "       try: "

// Describe formats err as the message for the user, with its hint if it has one.
func Describe(err error) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	fmt.Fprintf(&b, "tracesmith: %s\n", lines[0])
	for _, l := range lines[1:] {
		fmt.Fprintf(&b, "            %s\n", l)
	}
	var withHint interface{ Hint() string }
	pathErr, _ := errors.AsType[*fs.PathError](err)
	switch {
	case errors.As(err, &withHint) && withHint.Hint() != "":
		fmt.Fprintf(&b, tryPrefix+"%s\n", withHint.Hint())
	case errors.Is(err, syscall.EROFS):
		b.WriteString(tryPrefix + "name a place that can be written\n")
	case full(err):
		b.WriteString(tryPrefix + "free some space or name another place, and repeat the command\n")
	case pathErr != nil && errors.Is(pathErr, fs.ErrPermission):
		b.WriteString(tryPrefix + "name a place that you can read and write, or change its permissions\n")
	}
	return b.String()
}
