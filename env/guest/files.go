package guest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// stat describes one path without following a final symlink.
func stat(path string) (*guestpb.StatResponse, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	resp := &guestpb.StatResponse{Size: fi.Size(), Mode: uint32(fi.Mode().Perm()), IsDir: fi.IsDir()}
	if fi.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return nil, err
		}
		resp.Symlink = []byte(target)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		resp.Real = []byte(real)
	}
	return resp, nil
}

// openFile opens a file without blocking. It does not follow the magic links of /proc, which
// could lead to the guest's own descriptors.
func openFile(path string, flags int, mode uint32) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NONBLOCK),
		Mode:    uint64(mode),
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func randomName() string { return strings.ToLower(rand.Text()[:10]) }

// readFile returns a transfer of the first limit bytes of a regular file.
func readFile(path string, limit int64) (*transfer, error) {
	f, err := openFile(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
		if fi.IsDir() {
			err = fmt.Errorf("%s: is a directory", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &transfer{r: io.LimitReader(f, limit), total: fi.Size(), abort: func() { _ = f.Close() }}, nil
}

// writeFile returns a transfer that replaces the file at path. Data goes to a temporary file
// beside it, which replaces the file atomically at the end. writeFile follows symlinks, but a
// path in the workspace cannot lead out of it, even if a program replaces a directory
// meanwhile, because each step starts from an open directory.
func writeFile(w workspace, path string, mode uint32) (*transfer, error) {
	root, name, err := w.follow(path)
	if err != nil {
		return nil, err
	}
	t, err := replaceIn(root, name, mode)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

// replaceIn is writeFile for a name relative to root. The transfer closes root.
func replaceIn(root *os.Root, name string, mode uint32) (*transfer, error) {
	perm := fs.FileMode(0o644)
	switch fi, err := root.Lstat(name); {
	case err == nil && fi.IsDir():
		return nil, fmt.Errorf("%s: is a directory", name)
	case err == nil:
		perm = fi.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if mode != 0 {
		perm = fs.FileMode(mode).Perm()
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".tracesmith-%d-%s", os.Getpid(), randomName()))
	f, err := root.OpenFile(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	discard := func() { _, _, _ = f.Close(), root.Remove(temp), root.Close() }
	return &transfer{w: f, abort: discard, finish: func() error {
		err := errors.Join(f.Chmod(perm), f.Close())
		if err == nil {
			err = root.Rename(temp, name)
		}
		if err != nil {
			discard()
			return err
		}
		return root.Close()
	}}, nil
}
