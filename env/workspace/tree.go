package workspace

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of one tree. It is an error if a repository exceeds them.
const (
	MaxRepositoryBytes = 512 << 20
	MaxRepositoryFiles = 100_000
)

// Tree is a snapshot of the names and hashes of files. It reads their content from the source when it is needed. It is
// safe for concurrent use.
type Tree struct {
	open    func(entry) (io.ReadCloser, error)
	label   string // where the files are, for messages
	entries []entry
	sum     string
}

// entry is one path. mode is fs.ModeDir, fs.ModeSymlink, or the permission bits of a regular file.
type entry struct {
	path   string
	mode   fs.FileMode
	size   int64
	target string
	source string // path in the original tree, see Sub
	offset int64  // offset of the content in a tar file
	data   []byte // the content of an edited file
	edited bool
	sum    [sha256.Size]byte
}

// isOmitted reports whether a file or directory with this name is never part of a tree: history, installed packages and
// files that test runs leave behind.
func isOmitted(name string) bool {
	switch name {
	case ".git", ".venv", "__pycache__", "node_modules", ".pytest_cache":
		return true
	}
	return false
}

// FromDir returns the tree of the directory at path. It keeps symlinks below path and does not follow them. Errors name
// the file that caused them.
func FromDir(path string) (*Tree, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", path)
	}
	return read(os.DirFS(real), path)
}

// FromFS returns the tree of the directory root of fsys. If it contains symlinks, fsys must implement fs.ReadLinkFS.
func FromFS(fsys fs.FS, root string) (*Tree, error) {
	sub, err := fs.Sub(fsys, root)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", root, err)
	}
	return read(sub, root)
}

func read(fsys fs.FS, label string) (*Tree, error) {
	t := &Tree{label: label, open: func(e entry) (io.ReadCloser, error) { return fsys.Open(e.source) }}
	if err := t.list(fsys); err != nil {
		return nil, err
	}
	if err := t.checkSize(); err != nil {
		return nil, err
	}
	for i := range t.entries {
		if err := t.hash(fsys, &t.entries[i]); err != nil {
			return nil, err
		}
	}
	t.finish()
	return t, nil
}

// finish sorts the entries and computes the hash of the tree.
func (t *Tree) finish() {
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	t.sum = digest(t.entries)
}

// list adds the entries of a file system without opening any file.
func (t *Tree) list(fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return t.unreadable(name, err)
		case name == ".":
			return nil
		case isOmitted(d.Name()) && d.IsDir():
			return fs.SkipDir
		case isOmitted(d.Name()):
			return nil
		case !utf8.ValidString(name):
			return fmt.Errorf("%s: the file name %q is not UTF-8: rename it", t.label, name)
		case len(t.entries) == MaxRepositoryFiles:
			return fmt.Errorf("%s holds more than %d files (reading stopped at %s): point to a smaller directory",
				t.label, MaxRepositoryFiles, name)
		}
		info, err := d.Info()
		if err != nil {
			return t.unreadable(name, err)
		}
		e := entry{path: name, source: name}
		switch kind := info.Mode().Type(); kind {
		case fs.ModeDir, fs.ModeSymlink:
			e.mode = kind
		case 0:
			e.mode, e.size = 0o644, info.Size()
			if info.Mode()&0o111 != 0 {
				e.mode = 0o755
			}
		default:
			return fmt.Errorf("%s: %s is neither a file, a directory nor a symlink (%s): remove it",
				t.label, name, info.Mode())
		}
		t.entries = append(t.entries, e)
		return nil
	})
}

// checkSize returns an error if the tree is larger than MaxRepositoryBytes. The error names the largest directory.
func (t *Tree) checkSize() error {
	var total int64
	top := map[string]int64{}
	for _, e := range t.entries {
		total += e.size
		first, _, _ := strings.Cut(e.path, "/")
		top[first] += e.size
	}
	if total <= MaxRepositoryBytes {
		return nil
	}
	var largest string
	for name, size := range top {
		if size > top[largest] || size == top[largest] && name < largest {
			largest = name
		}
	}
	return fmt.Errorf("%s holds %d MB, the limit is %d MB; most of it is %s (%d MB): move that out of the directory",
		t.label, total>>20, MaxRepositoryBytes>>20, path.Join(t.label, largest), top[largest]>>20)
}

// hash sets the hash and the link target of e.
func (t *Tree) hash(fsys fs.FS, e *entry) error {
	switch e.mode.Type() {
	case fs.ModeDir:
		return nil
	case fs.ModeSymlink:
		target, err := fs.ReadLink(fsys, e.source)
		if err != nil {
			return t.unreadable(e.path, err)
		}
		e.target, e.sum = target, sha256.Sum256([]byte(target))
		return nil
	}
	sum, err := t.copy(io.Discard, *e)
	e.sum = sum
	return err
}

// copy writes the content of e to w and returns its hash. It returns an error if the size of the file has changed.
func (t *Tree) copy(w io.Writer, e entry) (sum [sha256.Size]byte, err error) {
	f, err := t.reader(e)
	if err != nil {
		return sum, t.unreadable(e.path, err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(f, e.size))
	if err != nil {
		return sum, fmt.Errorf("%s: copying %s: %w", t.label, e.path, err)
	}
	// Reading one more byte must return the end of the file.
	more, err := io.ReadFull(f, make([]byte, 1))
	if n != e.size || more != 0 {
		return sum, t.changed(e.path)
	}
	if !errors.Is(err, io.EOF) {
		return sum, t.unreadable(e.path, err)
	}
	h.Sum(sum[:0])
	return sum, nil
}

func (t *Tree) unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: reading %s: %w: make it readable or move it away", t.label, name, fs.ErrPermission)
	}
	return fmt.Errorf("%s: reading %s: %w", t.label, name, err)
}

func (t *Tree) changed(name string) error {
	return fmt.Errorf("%s: %s changed while it was in use: start again", t.label, name)
}

// digest hashes the mode, content hash and path of every entry. The NUL after each path separates entries.
func digest(entries []entry) string {
	h := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(h, "%s %x %s\x00", e.mode, e.sum, e.path)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SHA256 returns the hash of the tree in 64 hexadecimal digits. It covers sorted names, modes, link targets and
// contents, but no times and owners.
func (t *Tree) SHA256() string { return t.sum }

// Paths returns every path of the tree, including directories, sorted.
func (t *Tree) Paths() []string {
	paths := make([]string, len(t.entries))
	for i, e := range t.entries {
		paths[i] = e.path
	}
	return paths
}

// WriteTar writes the tree as a tar archive with sorted names, owner 0, time 0 and the modes 0644 and 0755. It returns
// an error if a file has changed since it was hashed.
func (t *Tree) WriteTar(w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, e := range t.entries {
		hdr := &tar.Header{Name: e.path, Mode: int64(e.mode.Perm()), ModTime: time.Unix(0, 0)}
		switch e.mode.Type() {
		case fs.ModeDir:
			hdr.Typeflag, hdr.Name, hdr.Mode = tar.TypeDir, e.path+"/", 0o755
		case fs.ModeSymlink:
			hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, e.target, 0o777
		default:
			hdr.Typeflag, hdr.Size = tar.TypeReg, e.size
		}
		if err := tw.WriteHeader(hdr); err != nil {
			return fmt.Errorf("%s: writing tar header of %s: %w", t.label, e.path, err)
		}
		if hdr.Typeflag != tar.TypeReg {
			continue
		}
		sum, err := t.copy(tw, e)
		if err != nil {
			return err
		}
		if sum != e.sum {
			return t.changed(e.path)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("%s: ending tar: %w", t.label, err)
	}
	return nil
}
