package mutate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// Limits on the commits that Invert accepts. A larger commit is probably a feature, not a fix.
const (
	maxInvertFiles = 8
	maxInvertLines = 400
)

// CodeCommits returns up to n of the last scan commits that Invert may accept, newest first. They change
// Python files other than tests and are not too large.
func CodeCommits(ctx context.Context, h *workspace.History, n, scan int, isTest func(path string) bool) ([]string, error) {
	all, err := h.Commits(ctx, scan)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range all {
		if len(out) == n {
			break
		}
		changed, err := h.Changed(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("reading commit %.12s: %w", c, err)
		}
		if files, err := invertibleFiles(changed, isTest); err == nil && len(files) > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

// invertibleFiles returns the files that inverting a commit would change. It returns a *RefusedError
// if the commit is too large.
func invertibleFiles(changed []workspace.Change, isTest func(path string) bool) ([]string, error) {
	var files []string
	lines := 0
	for _, c := range changed {
		if c.Status == "M" && c.OldMode == c.NewMode && c.Added >= 0 && strings.HasSuffix(c.Path, ".py") && !isTest(c.Path) {
			files, lines = append(files, c.Path), lines+c.Added+c.Deleted
		}
	}
	if len(files) > maxInvertFiles || lines > maxInvertLines {
		return nil, &RefusedError{Why: fmt.Sprintf("the commit changes %d files and %d lines of code: too much for one bug", len(files), lines)}
	}
	return files, nil
}

// Invert returns a mutation of HEAD that reintroduces the bug that a commit fixed. It applies the reverse
// diff of the commit or, if that no longer applies, restores the changed functions one by one. It does
// not change tests or files that the commit added or removed. The Mutator's workspace must contain HEAD.
// The error is a *RefusedError if there is no such mutation.
func (m *Mutator) Invert(ctx context.Context, h *workspace.History, commit string, isTest func(path string) bool) (Mutation, error) {
	changed, err := h.Changed(ctx, commit)
	if err != nil {
		return Mutation{}, fmt.Errorf("reading commit %.12s: %w", commit, err)
	}
	files, err := invertibleFiles(changed, isTest)
	if err == nil && len(files) == 0 {
		err = &RefusedError{Why: "the commit changes no code"}
	}
	if err != nil {
		return Mutation{}, fmt.Errorf("inverting %.12s: %w", commit, err)
	}
	slices.Sort(files)
	r, err := m.reversal(ctx, h, commit, files)
	if err != nil {
		return Mutation{}, fmt.Errorf("inverting %.12s: %w", commit, err)
	}
	mutation, err := m.change(ctx, r)
	mutation.Commit = commit
	return mutation, err
}

// reversal returns the request for an inversion. If the reverse diff applies to HEAD, the request
// contains each file before and after the diff ("compare"). Otherwise it contains each file before and
// after the commit, and the mutator restores single functions ("reverse").
func (m *Mutator) reversal(ctx context.Context, h *workspace.History, commit string, files []string) (request, error) {
	patch, err := h.Reverse(ctx, commit, files)
	if err != nil {
		return request{}, err
	}
	now, err := h.ApplyHead(ctx, patch, files)
	if _, unfit := errors.AsType[*workspace.ApplyError](err); err != nil && !unfit {
		return request{}, err
	}
	r := request{Op: "compare", Versions: map[string][2][]byte{}}
	if err != nil {
		r.Op = "reverse"
	}
	for i, f := range files {
		if r.Op == "compare" {
			head, err := version(ctx, h, h.Head(), f, false)
			if err != nil {
				return r, err
			}
			r.Versions[f] = [2][]byte{head, now[i]}
			continue
		}
		older, err := version(ctx, h, commit, f, true)
		if err != nil {
			return r, err
		}
		newer, err := version(ctx, h, commit, f, false)
		if err != nil {
			return r, err
		}
		r.Versions[f] = [2][]byte{older, newer}
	}
	return r, nil
}

// maxVersion is the size in bytes of the largest file that an inversion may revert.
const maxVersion = 2 << 20

// version returns a file as it is in a commit, or in its parent. It returns a *RefusedError if
// the file does not exist there or is too large.
func version(ctx context.Context, h *workspace.History, commit, file string, parent bool) ([]byte, error) {
	raw, found, err := h.File(ctx, commit, file, parent)
	if err == nil && (!found || len(raw) > maxVersion) {
		err = &RefusedError{Why: fmt.Sprintf("%s has no version that can be compared", file)}
	}
	return raw, err
}
