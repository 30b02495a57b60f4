package synth

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reasons why a repository cannot be used; RepoError wraps one of them.
var (
	ErrEntrypoint = errors.New("the entrypoint cannot be used")
	ErrNoTests    = errors.New("too few tests that always pass")
	ErrRed        = errors.New("the tests do not pass")
	ErrNotPython  = errors.New("no Python code outside the tests")
	ErrBenchmark  = errors.New("a public benchmark takes its tasks from it")
	ErrNoHistory  = errors.New("no git history that can be read")
	ErrNoResults  = errors.New("some runs of the tests ended without results")
)

// RepoError means that a repository cannot be used. It says why and what to do about it.
type RepoError struct {
	Repo   string
	Kind   error // one of the errors above, or of package verify
	Detail string
	Remedy string
}

func (e *RepoError) Error() string {
	msg := e.Kind.Error()
	if e.Repo != "" {
		msg = e.Repo + ": " + msg
	}
	if e.Detail != "" {
		msg += " (" + e.Detail + ")"
	}
	if e.Remedy != "" {
		msg += ": " + e.Remedy
	}
	return msg
}

func (e *RepoError) Unwrap() error { return e.Kind }

// NoUsableRepoError means that none of the repositories can be used. Refused maps each
// repository to the reason.
type NoUsableRepoError struct{ Refused map[string]string }

func (e *NoUsableRepoError) Error() string {
	names := slices.Sorted(maps.Keys(e.Refused))
	var lines []string
	for _, name := range names[:min(len(names), 5)] {
		lines = append(lines, e.Refused[name])
	}
	if more := len(names) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// OutputDirError means that the output directory cannot be used.
type OutputDirError struct{ Err error }

func (e *OutputDirError) Error() string { return e.Err.Error() + ": use another directory (-o)" }
func (e *OutputDirError) Unwrap() error { return e.Err }

// ConfigError means that a setting is invalid.
type ConfigError struct{ What string }

func (e *ConfigError) Error() string { return e.What }

// OutputDirInUseError means that the output directory belongs to a run with other settings or has
// files of something else.
type OutputDirInUseError struct{ Dir, What string }

func (e *OutputDirInUseError) Error() string {
	return fmt.Sprintf("%s belongs to another run (%s): use another directory (-o) or the same settings", e.Dir, e.What)
}

// OperatorError means that a requested operator does not exist.
type OperatorError struct {
	ID  string
	All []string
}

func (e *OperatorError) Error() string {
	return fmt.Sprintf("unknown operator %q: choose from %s", e.ID, strings.Join(e.All, ", "))
}
