package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// DiffTrees returns the patch from base to final in git's format, with full hashes and binary hunks and without
// renames. The bytes of the patch depend only on the two trees. Apply(base, patch) returns final exactly.
func (s *Store) DiffTrees(ctx context.Context, base, final string) ([]byte, error) {
	if base == final {
		return nil, nil
	}
	patch, err := s.run(ctx, command{limit: MaxPatch, args: []string{
		"diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff",
		"--no-textconv", "--diff-algorithm=myers", "--indent-heuristic", "--unified=3",
		"--src-prefix=a/", "--dst-prefix=b/", base, final, "--",
	}})
	if errors.Is(err, errTooLong) {
		return nil, &RefusedError{Why: fmt.Sprintf("its patch has more than %d bytes", MaxPatch)}
	}
	return patch, err
}

// Diff imports the final workspace of a task and returns the patch from the task's tree to it, and the hash of its
// tree. Patch and tree lack new files that are too large, each by itself or all together; omitted lists these files.
func (s *Store) Diff(ctx context.Context, tree env.Tree, final io.Reader) (patch []byte, treeSHA string, omitted []schemas.OmittedFile, err error) {
	base, err := s.Base(ctx, tree)
	if err != nil {
		return nil, "", nil, err
	}
	files, err := s.Files(ctx, base)
	if err != nil {
		return nil, "", nil, err
	}
	known := map[string]bool{}
	for _, f := range files {
		known[f.Path] = true
	}
	i := newImporter(s, func(path string) bool { return !known[path] })
	if treeSHA, err = i.read(ctx, final); err != nil {
		return nil, "", nil, err
	}
	patch, err = s.DiffTrees(ctx, base, treeSHA)
	return patch, treeSHA, i.omittedFiles(), err
}

// ApplyError says which hunk of a patch does not apply.
type ApplyError struct{ Detail string }

func (e *ApplyError) Error() string { return "patch does not apply: " + e.Detail }

// Apply applies a patch to base and returns the resulting tree. If the patch does not apply without merging, the error
// is an *ApplyError that names the file and the line.
func (s *Store) Apply(ctx context.Context, base string, patch []byte) (tree string, err error) {
	return s.apply(ctx, base, patch)
}

// Reverse applies a patch to final in reverse and returns the resulting tree. Its errors are those of Apply.
func (s *Store) Reverse(ctx context.Context, final string, patch []byte) (tree string, err error) {
	return s.apply(ctx, final, patch, "--reverse")
}

func (s *Store) apply(ctx context.Context, base string, patch []byte, flags ...string) (tree string, err error) {
	if len(patch) == 0 {
		return base, nil
	}
	if _, err := parseHash(base); err != nil {
		return "", err
	}
	err = s.withIndex(func(index string) error {
		if _, err := s.run(ctx, command{index: index, args: []string{"read-tree", base}}); err != nil {
			return err
		}
		_, err := s.run(ctx, command{index: index, stdin: bytes.NewReader(patch),
			args: append(append([]string{"apply"}, flags...), "--cached", "--whitespace=nowarn", "-p1", "-")})
		if e, ok := errors.AsType[*gitError](err); ok {
			return &ApplyError{Detail: strings.ReplaceAll(strings.ReplaceAll(e.stderr, "error: ", ""), "\n", "; ")}
		}
		if err != nil {
			return err
		}
		out, err := s.run(ctx, command{index: index, limit: 64, args: []string{"write-tree"}})
		tree = strings.TrimSpace(string(out))
		return err
	})
	return tree, err
}

// Change is one path that differs between two trees.
type Change struct {
	Path    string
	Status  string // A added, M modified, D deleted, T type changed
	OldMode uint32 // 0 = did not exist
	NewMode uint32 // 0 = no longer exists
	Added   int    // lines; -1 = binary
	Deleted int    // lines; -1 = binary
}

// Changed returns the differences between two trees, sorted by path.
func (s *Store) Changed(ctx context.Context, base, final string) ([]Change, error) {
	out, err := s.run(ctx, command{limit: MaxPatch, args: []string{
		"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", base, final, "--",
	}})
	if err != nil {
		return nil, err
	}
	return parseChanges(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
}

// parseChanges parses the output of git diff-tree --raw --numstat, split at NULs: raw records of two fields (":modes
// hashes status" and the path), followed by numstat records ("added\tdeleted\tpath").
func parseChanges(fields []string) ([]Change, error) {
	byPath := map[string]*Change{}
	for i := 0; i < len(fields) && fields[i] != ""; i++ {
		if raw, ok := strings.CutPrefix(fields[i], ":"); ok {
			cols := strings.Fields(raw)
			if len(cols) != 5 || i+1 >= len(fields) {
				return nil, fmt.Errorf("reading git's list of changes: unexpected record %q", raw)
			}
			oldMode, err1 := strconv.ParseUint(cols[0], 8, 32)
			newMode, err2 := strconv.ParseUint(cols[1], 8, 32)
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("reading git's list of changes: %w", err)
			}
			i++
			byPath[fields[i]] = &Change{Path: fields[i], Status: cols[4], OldMode: uint32(oldMode), NewMode: uint32(newMode)}
			continue
		}
		cols := strings.SplitN(fields[i], "\t", 3)
		if len(cols) != 3 || byPath[cols[2]] == nil {
			return nil, fmt.Errorf("reading git's list of changes: unexpected record %q", fields[i])
		}
		c := byPath[cols[2]]
		c.Added, c.Deleted = lineCount(cols[0]), lineCount(cols[1])
	}
	out := make([]Change, 0, len(byPath))
	for _, c := range byPath {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func lineCount(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return -1 // "-": binary
}
