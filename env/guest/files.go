package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// Stat describes one path without following a final symlink.
func (s *server) Stat(_ context.Context, r *guestpb.StatRequest) (*guestpb.StatResponse, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	path := s.path(r.Path)
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, fault(err)
	}
	resp := &guestpb.StatResponse{Size: fi.Size(), Mode: uint32(fi.Mode().Perm()), IsDir: fi.IsDir()}
	if fi.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return nil, fault(err)
		}
		resp.Symlink = []byte(target)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		resp.Real = []byte(real)
	}
	return resp, nil
}

// openFile opens without ever blocking and without the links of /proc, through
// which a path could lead to the guest's own descriptors.
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

// readFile offers the first limit bytes of a regular file.
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

// writeFile replaces path at the end, whole or not at all: what arrives goes to
// a neighbour that is renamed. A symlink is followed, so that it stays one.
func writeFile(path string, mode uint32) (*transfer, error) {
	path, err := followed(path)
	if err != nil {
		return nil, err
	}
	perm := fs.FileMode(0o644)
	switch fi, err := os.Lstat(path); {
	case err == nil && fi.IsDir():
		return nil, fmt.Errorf("%s: is a directory", path)
	case err == nil:
		perm = fi.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if mode != 0 {
		perm = fs.FileMode(mode).Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".tracesmith-%d-%s", os.Getpid(), randomName()))
	f, err := openFile(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	discard := func() { _, _ = f.Close(), os.Remove(temp) }
	return &transfer{w: f, abort: discard, finish: func() error {
		err := errors.Join(f.Chmod(perm), f.Close())
		if err == nil {
			err = os.Rename(temp, path)
		}
		if err != nil {
			discard()
		}
		return err
	}}, nil
}

// followed resolves a final symlink, dangling ones included.
func followed(path string) (string, error) {
	for range 40 {
		target, err := os.Readlink(path)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return path, nil // not a link, or nothing there
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many levels of symbolic links", path)
}
