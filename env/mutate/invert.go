package mutate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// Limits on commits that Invert accepts. Larger commits are features, not fixes.
const (
	maxInvertFiles = 8
	maxInvertLines = 400
)

// CodeCommits lists the newest of the last scan commits, at most n, that change
// Python files other than tests.
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
		if files, err := inverted(changed, isTest); err == nil && len(files) > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

// inverted lists the files of a commit that its inversion reverts.
func inverted(changed []workspace.Change, isTest func(path string) bool) ([]string, error) {
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

// Invert makes the bug that a commit has fixed: the reverse diff of the commit on HEAD, which the
// Mutator's workspace must contain, or, if that does not apply any more, its functions restored one
// by one. Tests, and files that the commit added or removed, stay as they are. A *RefusedError says
// why there is no such bug.
func (m *Mutator) Invert(ctx context.Context, h *workspace.History, commit string, isTest func(path string) bool) (Mutation, error) {
	changed, err := h.Changed(ctx, commit)
	if err != nil {
		return Mutation{}, fmt.Errorf("reading commit %.12s: %w", commit, err)
	}
	files, err := inverted(changed, isTest)
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

// reversal makes the request for an inversion: by text if the reverse diff applies to HEAD, else by
// function.
func (m *Mutator) reversal(ctx context.Context, h *workspace.History, commit string, files []string) (request, error) {
	patch, err := h.Reverse(ctx, commit, files)
	if err != nil {
		return request{}, err
	}
	now, err := h.ApplyHead(ctx, patch, files)
	if _, no := errors.AsType[*workspace.ApplyError](err); err != nil && !no {
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

// maxVersion bounds a file whose versions are compared.
const maxVersion = 2 << 20

func version(ctx context.Context, h *workspace.History, commit, file string, parent bool) ([]byte, error) {
	raw, found, err := h.File(ctx, commit, file, parent)
	if err == nil && (!found || len(raw) > maxVersion) {
		err = &RefusedError{Why: fmt.Sprintf("%s has no version that can be compared", file)}
	}
	return raw, err
}
