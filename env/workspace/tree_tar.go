package workspace

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// FromTar returns the tree in an uncompressed tar file. It unpacks nothing: the tree
// reads the content from the file when the tree is written, so the file must remain.
// FromTar omits the same files as FromDir. It returns an error for names outside the
// tree, duplicate names, sparse files and files of other types, such as devices.
func FromTar(name string) (*Tree, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer f.Close()
	t := &Tree{label: name, open: func(e entry) (io.ReadCloser, error) { return section(name, e) }}
	counted := &counter{r: f}
	index := map[string]int{}
	for in := tar.NewReader(counted); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a tar file or is truncated: %w", name, err)
		}
		e, ok, err := t.tarEntry(head, index)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if head.Typeflag == tar.TypeReg {
			e.offset = counted.n
			h := sha256.New()
			if _, err := io.Copy(h, in); err != nil {
				return nil, fmt.Errorf("%s is truncated at %s: %w", name, e.path, err)
			}
			h.Sum(e.sum[:0])
		}
		if err := t.add(index, e); err != nil {
			return nil, err
		}
	}
	if err := t.checkSize(); err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

// tarEntry converts a header to an entry. ok is false if trees omit the file. For index, see add.
func (t *Tree) tarEntry(head *tar.Header, index map[string]int) (e entry, ok bool, err error) {
	clean := path.Clean(head.Name)
	switch {
	case head.Typeflag == tar.TypeXGlobalHeader, clean == ".":
		return e, false, nil
	case !utf8.ValidString(clean):
		return e, false, fmt.Errorf("%s: the file name %q is not UTF-8", t.label, head.Name)
	case !fs.ValidPath(clean):
		return e, false, fmt.Errorf("%s: %q leads outside the tree", t.label, head.Name)
	case slices.ContainsFunc(strings.Split(clean, "/"), isOmitted):
		return e, false, nil
	case head.Typeflag == tar.TypeGNUSparse || head.PAXRecords["GNU.sparse.major"] != "":
		return e, false, fmt.Errorf("%s: %s is stored as a sparse file: write the tar without --sparse", t.label, clean)
	}
	e = entry{path: clean}
	switch head.Typeflag {
	case tar.TypeDir:
		e.mode = fs.ModeDir
	case tar.TypeSymlink:
		e.mode, e.target, e.sum = fs.ModeSymlink, head.Linkname, sha256.Sum256([]byte(head.Linkname))
	case tar.TypeReg:
		e.mode, e.size = 0o644, head.Size
		if head.Mode&0o111 != 0 {
			e.mode = 0o755
		}
	case tar.TypeLink:
		i, known := index[path.Clean(head.Linkname)]
		if !known || !t.entries[i].mode.IsRegular() {
			return e, false, fmt.Errorf("%s: %s is a hard link to %q, which is not an earlier file of the archive", t.label, clean, head.Linkname)
		}
		e = t.entries[i]
		e.path = clean
	default:
		return e, false, fmt.Errorf("%s: %s is neither a file, a directory nor a symlink", t.label, clean)
	}
	return e, true, nil
}

// add appends an entry and those of its parent directories that are missing. index maps
// each path to its position in t.entries.
func (t *Tree) add(index map[string]int, e entry) error {
	for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
		i, known := index[dir]
		if known && !t.entries[i].mode.IsDir() {
			return fmt.Errorf("%s: %s lies below %s, which is not a directory", t.label, e.path, dir)
		}
		if !known {
			index[dir] = len(t.entries)
			t.entries = append(t.entries, entry{path: dir, mode: fs.ModeDir})
		}
	}
	if i, known := index[e.path]; known {
		if t.entries[i].mode.IsDir() && e.mode.IsDir() {
			return nil
		}
		return fmt.Errorf("%s: %s occurs twice", t.label, e.path)
	}
	if len(t.entries) >= MaxRepositoryFiles {
		return fmt.Errorf("%s holds more than %d files", t.label, MaxRepositoryFiles)
	}
	index[e.path] = len(t.entries)
	t.entries = append(t.entries, e)
	return nil
}

// section opens the content of one entry in a tar file.
func section(name string, e entry) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, e.offset, e.size), f}, nil
}

// counter counts the bytes read from r. It has no Seek method, so the tar reader reads the
// bytes that it skips, and n remains the offset in the file.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
