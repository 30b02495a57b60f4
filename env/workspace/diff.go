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

// DiffTrees is the patch from base to final: git's format with full hashes and
// binary hunks, without renames, in bytes that depend on the two trees alone.
// Apply(base, DiffTrees(base, final)) is final, exactly.
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

// Diff imports the final workspace of a task's tree and returns the patch that leads
// to it, with the hash of its tree. Neither holds the files that it leaves out: new
// ones that are too large, by themselves or all together.
func (s *Store) Diff(ctx context.Context, tree env.Tree, final io.Reader) (patch []byte, treeSHA string, left []schemas.LeftOut, err error) {
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
	return patch, treeSHA, i.leftOut(), err
}

// ApplyError says which hunk of a patch does not fit.
type ApplyError struct{ Detail string }

func (e *ApplyError) Error() string { return "patch does not apply: " + e.Detail }

// Apply returns the tree that a patch makes of base. The patch must fit without
// merging; one that does not is an *ApplyError naming file and line.
func (s *Store) Apply(ctx context.Context, base string, patch []byte) (tree string, err error) {
	return s.apply(ctx, base, patch)
}

// Reverse takes a patch back: the tree from which it leads to final, as far as
// the patch alone can tell. Errors are those of Apply.
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
	OldMode uint32 // 0: did not exist
	NewMode uint32 // 0: does not exist
	Added   int    // lines; -1: binary
	Deleted int    // lines; -1: binary
}

// Changed lists the differences between two trees, sorted by path.
func (s *Store) Changed(ctx context.Context, base, final string) ([]Change, error) {
	out, err := s.run(ctx, command{limit: MaxPatch, args: []string{
		"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", base, final, "--",
	}})
	if err != nil {
		return nil, err
	}
	return parseChanges(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
}

// parseChanges reads the NUL-separated raw records (":modes status", path)
// followed by the numstat ones ("added\tdeleted\tpath").
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
