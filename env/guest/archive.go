package guest

import (
	"archive/tar"
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

	"golang.org/x/sys/unix"
)

// maxPath is Linux's PATH_MAX, in bytes. No system call accepts a longer path, so an archive with
// a longer name could not be used.
const maxPath = 4096

// unpackInto returns a transfer that unpacks an archive below dir while it arrives.
func unpackInto(dir string) (*transfer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := unpack(root, pr)
		if err == nil {
			_, err = io.Copy(io.Discard, pr) // padding after the end of the archive
		}
		pr.CloseWithError(err)
		done <- errors.Join(err, root.Close())
	}()
	return &transfer{
		w:      pw,
		finish: func() error { _ = pw.Close(); return <-done },
		abort:  func() { pw.CloseWithError(errors.New("abandoned")); <-done },
	}, nil
}

// unpack writes the entries of a tar archive below root, and skips global headers. It returns an
// error for names that are absolute, contain ".." or lead outside root through a symlink, for
// sparse files, and for entries that are not files, directories or symlinks.
func unpack(root *os.Root, r io.Reader) error {
	type dirMode struct {
		name string
		mode fs.FileMode
	}
	var dirs []dirMode
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading archive: %w", err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) || slices.Contains(strings.Split(h.Name, "/"), "..") {
			return fmt.Errorf("the name of archive entry %q is absolute or contains \"..\"", h.Name)
		}
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") { // a few bytes can claim to be a huge file
				return fmt.Errorf("archive entry %q is sparse", h.Name)
			}
		}
		mode := fs.FileMode(h.Mode).Perm()
		if h.Typeflag == tar.TypeDir {
			dirs = append(dirs, dirMode{name, mode})
			mode |= 0o700
		}
		if err := unpackEntry(root, name, mode, h, tr); err != nil {
			return fmt.Errorf("unpacking %q: %w", name, err)
		}
	}
	for _, d := range slices.Backward(dirs) {
		if err := root.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}

func unpackEntry(root *os.Root, name string, mode fs.FileMode, h *tar.Header, r io.Reader) error {
	if name != "." {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
	}
	if fi, err := root.Lstat(name); err == nil && !fi.IsDir() {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, mode); err != nil {
			return err
		}
		return root.Chmod(name, mode)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Chmod(mode), f.Close())
	}
	return fmt.Errorf("entry type %q is not accepted", string(h.Typeflag))
}

// packFrom returns a transfer of dir as an archive.
func packFrom(dir string) (*transfer, error) {
	root, restoreMode, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer restoreMode()
		tw := tar.NewWriter(pw)
		err := errors.Join(pack(tw, root, ""), tw.Close(), root.Close())
		pw.CloseWithError(err)
	}()
	return &transfer{r: pr, abort: func() { _ = pr.Close(); <-done }}, nil
}

// openRoot opens a directory even if a program has removed its own permission to read it;
// restoreMode restores the mode.
func openRoot(dir string) (root *os.Root, restoreMode func(), err error) {
	restoreMode = func() {}
	root, err = os.OpenRoot(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return root, restoreMode, err
	}
	fi, statErr := os.Stat(dir)
	if statErr != nil || os.Chmod(dir, 0o700) != nil {
		return nil, nil, err
	}
	restoreMode = func() { _ = os.Chmod(dir, fi.Mode().Perm()) }
	if root, err = os.OpenRoot(dir); err != nil {
		restoreMode()
	}
	return root, restoreMode, err
}

// pack writes the content of root, whose name in the archive is dir, sorted by name and
// without times and owners. It omits sockets, pipes and devices. It opens each directory as a
// new root, because resolving a path from the top takes longer the deeper the path is.
func pack(tw *tar.Writer, root *os.Root, dir string) error {
	f, restoreMode, err := openReadable(root, ".", unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer restoreMode()
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := packEntry(tw, root, e.Name(), path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// packEntry writes the entry base of root, whose name in the archive is name.
func packEntry(tw *tar.Writer, root *os.Root, base, name string) error {
	if len(name) > maxPath {
		return fmt.Errorf("%.100s...: path longer than %d bytes", name, maxPath)
	}
	fi, err := root.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since it was listed
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(fi.Mode().Perm()), ModTime: time.Unix(0, 0)}
	switch {
	case fi.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		return packDir(tw, root, base, name)
	case fi.Mode()&fs.ModeSymlink != 0:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = root.Readlink(base); err != nil {
			return err
		}
		return tw.WriteHeader(h)
	case fi.Mode().IsRegular():
		return packFile(tw, root, base, h)
	}
	return nil
}

func packDir(tw *tar.Writer, root *os.Root, base, name string) error {
	restoreMode, err := makeReadable(root, base)
	if err != nil {
		return err
	}
	defer restoreMode()
	sub, err := root.OpenRoot(base)
	if err != nil {
		return err
	}
	return errors.Join(pack(tw, sub, name), sub.Close())
}

func packFile(tw *tar.Writer, root *os.Root, name string, h *tar.Header) error {
	f, restoreMode, err := openReadable(root, name, 0)
	if err != nil {
		return err
	}
	defer restoreMode()
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return err // replaced since it was listed
	}
	h.Typeflag, h.Size = tar.TypeReg, fi.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(tw, io.LimitReader(f, h.Size))
	if err != nil || n == h.Size {
		return err
	}
	_, err = io.CopyN(tw, zeros{}, h.Size-n) // the file shrank while it was read
	return err
}

// openReadable opens a file or directory of this user even if its mode forbids reading;
// restoreMode restores the mode.
func openReadable(root *os.Root, name string, flag int) (f *os.File, restoreMode func(), err error) {
	restoreMode, err = makeReadable(root, name)
	if err != nil {
		return nil, nil, err
	}
	f, err = root.OpenFile(name, flag|os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		restoreMode()
	}
	return f, restoreMode, err
}

// makeReadable makes a file or directory of this user readable; restoreMode restores the mode.
func makeReadable(root *os.Root, name string) (restoreMode func(), err error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	need := fs.FileMode(0o400)
	if fi.IsDir() {
		need = 0o500
	}
	mode := fi.Mode().Perm()
	if mode&need == need || fi.Mode()&fs.ModeSymlink != 0 {
		return func() {}, nil
	}
	if err := root.Chmod(name, mode|need); err != nil {
		return nil, err
	}
	return func() { _ = root.Chmod(name, mode) }, nil // fails only if the file is gone
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
