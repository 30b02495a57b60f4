package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
// a neighbour that is renamed. A symlink is followed, so that it stays one, but
// no path of the workspace leads out of it: every step is taken from an open
// directory, whatever a program replaces meanwhile.
func (s *server) writeFile(path string, mode uint32) (*transfer, error) {
	root, name, err := s.followed(path)
	if err != nil {
		return nil, err
	}
	t, err := replaceIn(root, name, mode)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

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

// followed opens the directory that path must stay below, which is the
// workspace for what lies in it, and names the file there: what a final symlink
// points to, dangling or not.
func (s *server) followed(path string) (*os.Root, string, error) {
	inside := s.inWorkspace(path)
	for range 40 {
		root, name, err := s.rootOf(path)
		if err != nil {
			return nil, "", err
		}
		target, err := root.Readlink(name)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return root, name, nil // not a link, or nothing there
		}
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if path = filepath.Clean(target); inside && !s.inWorkspace(path) {
			return nil, "", fmt.Errorf("%s: a symbolic link leads out of the workspace", path)
		}
	}
	return nil, "", fmt.Errorf("%s: too many levels of symbolic links", path)
}

func (s *server) inWorkspace(path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(string(s.config.Workdir), "/")+"/")
}

// rootOf splits an absolute path: the workspace, or the nearest directory above
// that exists, and the rest.
func (s *server) rootOf(path string) (*os.Root, string, error) {
	dir := string(s.config.Workdir)
	if !s.inWorkspace(path) {
		for dir = filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if fi, err := os.Stat(dir); dir == "/" || err == nil && fi.IsDir() {
				break
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return nil, "", err
			}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	name, err := filepath.Rel(dir, path)
	return root, name, err
}
