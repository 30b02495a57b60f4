package workspace

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// Ignored are the names of caches that programs drop into a workspace. Whatever
// lies at or below such a name, at any depth, is never part of a tree; nor is
// the .git of the workspace itself.
var Ignored = []string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}

// RefusedError says that a workspace cannot be taken as it is: a hostile or
// impossible entry, or one beyond the limits. It is the doing of whoever made
// the workspace, not of the machinery.
type RefusedError struct{ Path, Why string }

func (e *RefusedError) Error() string {
	if e.Path == "" {
		return "workspace: " + e.Why
	}
	return fmt.Sprintf("workspace entry %q: %s", e.Path, e.Why)
}

// Is makes it an env.ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == env.ErrRefused }

// Import stores the files of a tar stream and returns the hash of their tree:
// regular files (with the executable bit), hard links as copies, symlinks as
// links. Directories exist only through what they hold, so empty ones vanish;
// sockets, pipes and devices are passed over, as git does. Entries that could
// reach outside, that hold a .git below the top, or that exceed the limits are
// a *RefusedError.
func (s *Store) Import(ctx context.Context, r io.Reader) (tree string, err error) {
	root := &node{mode: modeDir, children: map[string]*node{}}
	seen := map[string]File{} // regular files, for hard links
	var entries int
	var total int64
	for in := tar.NewReader(r); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("reading workspace tar: %w", err)
		}
		path, skip, err := cleanPath(head.Name)
		if err != nil {
			return "", err
		}
		if skip {
			continue
		}
		entries++
		total += max(head.Size, 0)
		switch {
		case entries > MaxEntries:
			return "", &RefusedError{path, fmt.Sprintf("the workspace has more than %d entries", MaxEntries)}
		case total > MaxTreeBytes:
			return "", &RefusedError{path, fmt.Sprintf("the workspace has more than %d bytes", MaxTreeBytes)}
		}
		f, ok, err := s.importEntry(in, head, path, seen)
		if err != nil {
			return "", err
		}
		if ok && !root.add(path, f.Mode, f.hash) {
			return "", &RefusedError{path, "comes twice, or below something that is no directory"}
		}
	}
	h, err := s.writeTree(root)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// importEntry stores one entry's content; ok is false for what a tree does not hold.
func (s *Store) importEntry(in io.Reader, head *tar.Header, path string, seen map[string]File) (f File, ok bool, err error) {
	switch head.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		if head.Size > MaxFileBytes {
			return f, false, &RefusedError{path, fmt.Sprintf("has %d bytes; a file may have %d", head.Size, MaxFileBytes)}
		}
		data, err := io.ReadAll(io.LimitReader(in, MaxFileBytes))
		if err != nil {
			return f, false, fmt.Errorf("reading workspace tar: %w", err)
		}
		f = File{Path: path, Mode: ModeFile}
		if head.Mode&0o100 != 0 {
			f.Mode = ModeExec
		}
		if f.hash, err = s.put("blob", data); err != nil {
			return f, false, err
		}
		seen[path] = f
		return f, true, nil
	case tar.TypeLink:
		target, _, err := cleanPath(head.Linkname)
		if err != nil {
			return f, false, err
		}
		f, ok = seen[target]
		if !ok {
			return f, false, &RefusedError{path, fmt.Sprintf("is a hard link to %q, which did not come before it", head.Linkname)}
		}
		return f, true, nil
	case tar.TypeSymlink:
		if head.Linkname == "" || len(head.Linkname) > MaxPathBytes || strings.ContainsRune(head.Linkname, 0) {
			return f, false, &RefusedError{path, "has an impossible link target"}
		}
		f = File{Path: path, Mode: ModeSymlink}
		f.hash, err = s.put("blob", []byte(head.Linkname))
		return f, err == nil, err
	default:
		return f, false, nil
	}
}

// cleanPath turns an entry's name into a path of the tree; skip is set for the
// root, caches and the workspace's own .git.
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

// Export writes a tree as a tar: git's order, directories first, no times, no
// owners, so equal trees give equal bytes.
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
