package workspace

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Import stores the files of a tar stream and returns the hash of their tree: regular files
// (with the executable bit), hard links as copies, symlinks as links. Directories exist only
// through their content, so empty ones vanish; like git, Import skips sockets, pipes and
// devices. Entries that could reach outside, that hold a .git below the top, or that exceed
// the limits are a *RefusedError.
func (s *Store) Import(ctx context.Context, r io.Reader) (tree string, err error) {
	return newImporter(s, func(string) bool { return false }).read(ctx, r)
}

// importer reads one tar stream into a store.
type importer struct {
	*Store
	optional func(path string) bool // may be left out: a file that the base tree lacks

	root    *node
	seen    map[string]File  // regular files, for hard links
	sizes   map[string]int64 // of regular files that were taken
	fresh   []File           // optional ones, which are added last
	left    map[string]int64 // sizes of those that were not taken
	entries int
	total   int64
}

func newImporter(s *Store, optional func(path string) bool) *importer {
	return &importer{
		Store: s, optional: optional, root: &node{mode: modeDir, children: map[string]*node{}},
		seen: map[string]File{}, sizes: map[string]int64{}, left: map[string]int64{},
	}
}

func (i *importer) read(ctx context.Context, r io.Reader) (tree string, err error) {
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
		if err := i.entry(in, head); err != nil {
			return "", err
		}
	}
	i.fit()
	for _, f := range i.fresh {
		if err := i.add(f); err != nil {
			return "", err
		}
	}
	h, err := i.writeTree(i.root)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

func (i *importer) entry(in io.Reader, head *tar.Header) error {
	path, skip, err := cleanPath(head.Name)
	if err != nil || skip {
		return err
	}
	i.entries++
	size := max(head.Size, 0)
	if (size > MaxFileBytes || i.total+size > MaxTreeBytes) && head.Typeflag != tar.TypeLink && i.optional(path) {
		i.left[path] = size
		return nil
	}
	i.total += size
	switch {
	case i.entries > MaxEntries:
		return &RefusedError{path, fmt.Sprintf("the workspace has more than %d entries", MaxEntries)}
	case i.total > MaxTreeBytes:
		return &RefusedError{path, fmt.Sprintf("the workspace has more than %d bytes", MaxTreeBytes)}
	}
	f, ok, err := i.take(in, head, path)
	if err != nil || !ok {
		return err
	}
	if _, regular := i.sizes[path]; regular && i.optional(path) {
		i.fresh = append(i.fresh, f)
		return nil
	}
	return i.add(f)
}

// fit leaves out the largest new files until those that stay fit into a patch.
func (i *importer) fit() {
	slices.SortFunc(i.fresh, func(a, b File) int {
		return cmp.Or(cmp.Compare(i.sizes[a.Path], i.sizes[b.Path]), strings.Compare(a.Path, b.Path))
	})
	sum, fitting := int64(0), 0
	for _, f := range i.fresh {
		if sum += i.sizes[f.Path]; sum > MaxNewBytes {
			break
		}
		fitting++
	}
	for _, f := range i.fresh[fitting:] {
		i.left[f.Path] = i.sizes[f.Path]
	}
	i.fresh = i.fresh[:fitting]
}

func (i *importer) add(f File) error {
	if !i.root.add(f.Path, f.Mode, f.hash) {
		return &RefusedError{f.Path, "occurs twice, or lies below something that is not a directory"}
	}
	return nil
}

func (i *importer) leftOut() []schemas.LeftOut {
	var out []schemas.LeftOut
	for _, path := range slices.Sorted(maps.Keys(i.left)) {
		out = append(out, schemas.LeftOut{Path: path, Bytes: i.left[path]})
	}
	return out
}

// take stores one entry's content; ok is false for what a tree does not hold.
func (i *importer) take(in io.Reader, head *tar.Header, path string) (f File, ok bool, err error) {
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
		if f.hash, err = i.put("blob", data); err != nil {
			return f, false, err
		}
		i.seen[path], i.sizes[path] = f, int64(len(data))
		return f, true, nil
	case tar.TypeLink:
		return i.link(head.Linkname, path)
	case tar.TypeSymlink:
		if head.Linkname == "" || len(head.Linkname) > MaxPathBytes || strings.ContainsRune(head.Linkname, 0) {
			return f, false, &RefusedError{path, "has an impossible link target"}
		}
		f = File{Path: path, Mode: ModeSymlink}
		f.hash, err = i.put("blob", []byte(head.Linkname))
		return f, err == nil, err
	default:
		return f, false, nil
	}
}

// link takes a hard link as a copy of its target, or leaves it out as that was.
func (i *importer) link(name, path string) (f File, ok bool, err error) {
	target, _, err := cleanPath(name)
	if err != nil {
		return f, false, err
	}
	if size, left := i.left[target]; left && i.optional(path) {
		i.left[path] = size
		return f, false, nil
	}
	if f, ok = i.seen[target]; !ok {
		return f, false, &RefusedError{path, fmt.Sprintf("is a hard link to %q, which did not come before it", name)}
	}
	f.Path = path
	i.sizes[path] = i.sizes[target]
	return f, true, nil
}
