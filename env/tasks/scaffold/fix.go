package scaffold

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// Fix is a commit that fixes a bug.
type Fix struct {
	workspace.Commit
	Parent       string
	Gold         string   // the commit's changes to the program, as a patch
	Files        []string // files that Gold changes
	Tests        string   // the commit's changes to the tests, as a patch; "" if there are none
	TestFiles    []string // files that Tests changes
	OmittedFiles []string // other files that the commit changes, such as a changelog
}

// FixError says why a commit cannot be made into a task, and what to do about it.
type FixError struct{ Rev, Why, Remedy string }

func (e *FixError) Error() string {
	return fmt.Sprintf("commit %s cannot be made into a task: %s: %s", e.Rev, e.Why, e.Remedy)
}

// ReadFix splits a commit into its changes to the program and to the tests. The error is a *FixError if the commit
// cannot be made into a task.
func ReadFix(ctx context.Context, h *workspace.History, rev string) (Fix, error) {
	c, err := h.FindCommit(ctx, rev)
	if err != nil {
		return Fix{}, &FixError{rev, err.Error(), "name a commit of the repository's history"}
	}
	if len(c.Parents) != 1 {
		return Fix{}, &FixError{rev, fmt.Sprintf("it has %d parents", len(c.Parents)), "name a commit with exactly one parent"}
	}
	f := Fix{Commit: c, Parent: c.Parents[0]}
	changes, err := h.Changed(ctx, c.Hash)
	if err != nil {
		return Fix{}, err
	}
	var program, tests []string
	for _, change := range changes {
		switch {
		case isTest(change.Path):
			tests = append(tests, change.Path)
		case isProse(change.Path):
			f.OmittedFiles = append(f.OmittedFiles, change.Path)
		default:
			program = append(program, change.Path)
		}
	}
	if !slices.ContainsFunc(program, func(p string) bool { return strings.HasSuffix(p, ".py") }) {
		return Fix{}, &FixError{rev, "it changes no Python file outside of the tests", "name the commit that changes the program"}
	}
	f.Files, f.TestFiles = program, tests
	gold, err := h.Patch(ctx, c.Hash, program)
	if err != nil {
		return Fix{}, err
	}
	f.Gold = string(gold)
	if len(tests) > 0 {
		patch, err := h.Patch(ctx, c.Hash, tests)
		if err != nil {
			return Fix{}, err
		}
		f.Tests = string(patch)
	}
	return f, nil
}

// ErrNoHistory means that a directory is not a git repository, or that its history cannot be read.
var ErrNoHistory = errors.New("the directory has no git history that can be read")

var (
	testDir  = regexp.MustCompile(`^_?(?:tests?|testing|unittests?)$`)
	testName = regexp.MustCompile(`^(?:test_.*|.*_tests?|tests?|conftest)\.py$`)
)

// isTest reports whether a file is code or data of the tests.
func isTest(file string) bool {
	return testName.MatchString(path.Base(file)) || slices.ContainsFunc(strings.Split(path.Dir(file), "/"), testDir.MatchString)
}

var (
	proseName = regexp.MustCompile(`(?i)^(?:change(?:s|log)?|history|news|authors|contributors|readme|release[-_ ]?notes)\b|\.(?:rst|md|txt|yml|yaml)$`)
	proseDir  = regexp.MustCompile(`(?i)^(?:docs?|changelog(?:\.d)?|changes|newsfragments?|news|\.github)$`)
)

// isProse reports whether a file is documentation, release notes, plain text or YAML, and not part of the program.
func isProse(file string) bool {
	return !strings.HasSuffix(file, ".py") && (proseName.MatchString(path.Base(file)) ||
		slices.ContainsFunc(strings.Split(path.Dir(file), "/"), proseDir.MatchString))
}
