package workspace

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// Ignored lists the names of caches that programs leave in a workspace. A tree omits entries
// with these names, at any depth, and all that they contain. It also omits the workspace's own
// .git.
var Ignored = []string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}

// RefusedError means that a workspace cannot be imported or diffed because an entry is hostile
// or invalid, or because it exceeds a limit. The cause is the workspace, not tracesmith.
// Path may be empty.
type RefusedError struct{ Path, Why string }

func (e *RefusedError) Error() string {
	if e.Path == "" {
		return "workspace: " + e.Why
	}
	return fmt.Sprintf("workspace entry %q: %s", e.Path, e.Why)
}

// Is makes errors.Is report true for env.ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == env.ErrRefused }

// cleanPath converts the name of a tar entry to a path in the tree. skip is true for the root,
// caches and the workspace's own .git. The error is a *RefusedError.
func cleanPath(name string) (path string, skip bool, err error) {
	refuse := func(why string) (string, bool, error) { return "", false, &RefusedError{name, why} }
	switch {
	case len(name) > MaxPathBytes:
		return "", false, &RefusedError{name[:200] + "...", "has a path longer than 4096 bytes"}
	case strings.HasPrefix(name, "/"):
		return refuse("has an absolute path")
	case strings.ContainsRune(name, 0):
		return refuse("has a NUL in its name")
	}
	var parts []string
	for p := range strings.SplitSeq(name, "/") {
		switch {
		case p == "" || p == ".":
			continue
		case p == "..":
			return refuse("leads outside the workspace")
		case len(p) > 255:
			return refuse("has a name longer than 255 bytes")
		}
		parts = append(parts, p)
	}
	for i, p := range parts {
		switch {
		case slices.Contains(Ignored, p), i == 0 && p == ".git":
			return "", true, nil
		case strings.EqualFold(p, ".git"):
			return refuse("is part of a nested git repository, which a patch cannot hold: remove it")
		}
	}
	return strings.Join(parts, "/"), len(parts) == 0, nil
}

// Export writes a tree to w as a tar archive. Equal trees result in equal bytes: entries are in
// git's order, a directory comes before its contents, and there are no times or owners.
func (s *Store) Export(ctx context.Context, tree string, w io.Writer) error {
	out := tar.NewWriter(w)
	if err := s.exportTo(ctx, tree, out); err != nil {
		return err
	}
	return out.Close()
}

func (s *Store) exportTo(ctx context.Context, tree string, out *tar.Writer) error {
	root, err := parseHash(tree)
	if err != nil {
		return err
	}
	return s.walk(root, "", func(f File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.Mode == modeDir {
			return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: f.Path, Mode: 0o755})
		}
		content, err := s.get("blob", f.hash)
		if err != nil {
			return err
		}
		if f.Mode == ModeSymlink {
			return out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.Path, Linkname: string(content), Mode: 0o777})
		}
		return writeTarFile(out, f.Path, int64(f.Mode&0o777), content)
	})
}

func writeTarFile(out *tar.Writer, name string, mode int64, content []byte) error {
	head := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}
	if err := out.WriteHeader(&head); err != nil {
		return fmt.Errorf("writing tar entry %q: %w", name, err)
	}
	_, err := out.Write(content)
	return err
}
