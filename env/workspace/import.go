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

// Import stores the files of a tar stream and returns the hash of their tree. It keeps regular
// files, with the executable bit, and symlinks, and stores hard links as copies. Like git, it
// omits empty directories, sockets, pipes and devices. If an entry leads outside the workspace,
// belongs to a nested .git or exceeds the limits, the error is a *RefusedError.
func (s *Store) Import(ctx context.Context, r io.Reader) (tree string, err error) {
	return newImporter(s, func(string) bool { return false }).read(ctx, r)
}

// importer reads one tar stream into a store.
type importer struct {
	*Store
	isNew func(path string) bool // a file that the base tree lacks, which may be omitted

	root     *node
	seen     map[string]File  // regular files, for hard links
	sizes    map[string]int64 // of stored regular files
	newFiles []File           // stored new files, which are added last
	omitted  map[string]int64 // sizes of omitted files
	entries  int
	total    int64
}

func newImporter(s *Store, isNew func(path string) bool) *importer {
	return &importer{
		Store: s, isNew: isNew, root: &node{mode: modeDir, children: map[string]*node{}},
		seen: map[string]File{}, sizes: map[string]int64{}, omitted: map[string]int64{},
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
		if err := i.importEntry(in, head); err != nil {
			return "", err
		}
	}
	i.omitLargest()
	for _, f := range i.newFiles {
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

func (i *importer) importEntry(in io.Reader, head *tar.Header) error {
	path, skip, err := cleanPath(head.Name)
	if err != nil || skip {
		return err
	}
	i.entries++
	size := max(head.Size, 0)
	if (size > MaxFileBytes || i.total+size > MaxTreeBytes) && head.Typeflag != tar.TypeLink && i.isNew(path) {
		i.omitted[path] = size
		return nil
	}
	i.total += size
	switch {
	case i.entries > MaxEntries:
		return &RefusedError{path, fmt.Sprintf("the workspace has more than %d entries", MaxEntries)}
	case i.total > MaxTreeBytes:
		return &RefusedError{path, fmt.Sprintf("the workspace has more than %d bytes", MaxTreeBytes)}
	}
	f, ok, err := i.store(in, head, path)
	if err != nil || !ok {
		return err
	}
	if _, regular := i.sizes[path]; regular && i.isNew(path) {
		i.newFiles = append(i.newFiles, f)
		return nil
	}
	return i.add(f)
}

// omitLargest omits the largest new files until the rest fits into a patch.
func (i *importer) omitLargest() {
	slices.SortFunc(i.newFiles, func(a, b File) int {
		return cmp.Or(cmp.Compare(i.sizes[a.Path], i.sizes[b.Path]), strings.Compare(a.Path, b.Path))
	})
	sum, fitting := int64(0), 0
	for _, f := range i.newFiles {
		if sum += i.sizes[f.Path]; sum > MaxNewBytes {
			break
		}
		fitting++
	}
	for _, f := range i.newFiles[fitting:] {
		i.omitted[f.Path] = i.sizes[f.Path]
	}
	i.newFiles = i.newFiles[:fitting]
}

func (i *importer) add(f File) error {
	if !i.root.add(f.Path, f.Mode, f.hash) {
		return &RefusedError{f.Path, "occurs twice, or lies below something that is not a directory"}
	}
	return nil
}

func (i *importer) omittedFiles() []schemas.OmittedFile {
	var out []schemas.OmittedFile
	for _, path := range slices.Sorted(maps.Keys(i.omitted)) {
		out = append(out, schemas.OmittedFile{Path: path, Bytes: i.omitted[path]})
	}
	return out
}

// store stores the content of one entry. ok is false for entries that trees omit.
func (i *importer) store(in io.Reader, head *tar.Header, path string) (f File, ok bool, err error) {
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
			return f, false, &RefusedError{path, "has an invalid link target"}
		}
		f = File{Path: path, Mode: ModeSymlink}
		f.hash, err = i.put("blob", []byte(head.Linkname))
		return f, err == nil, err
	default:
		return f, false, nil
	}
}

// link stores a hard link as a copy of its target, or omits it if the target was omitted.
func (i *importer) link(name, path string) (f File, ok bool, err error) {
	target, _, err := cleanPath(name)
	if err != nil {
		return f, false, err
	}
	if size, wasOmitted := i.omitted[target]; wasOmitted && i.isNew(path) {
		i.omitted[path] = size
		return f, false, nil
	}
	if f, ok = i.seen[target]; !ok {
		return f, false, &RefusedError{path, fmt.Sprintf("is a hard link to %q, which is not an earlier file of the archive", name)}
	}
	f.Path = path
	i.sizes[path] = i.sizes[target]
	return f, true, nil
}
