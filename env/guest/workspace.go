package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// workspace is the directory that the host's relative paths start at.
type workspace string

// path makes a path from the host absolute.
func (w workspace) path(p []byte) string {
	if name := string(p); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(string(w), string(p))
}

// follow returns the directory that path must stay below (the workspace if path is inside it)
// and the name of the file relative to that directory. If path is a symlink, the file is the
// link's target, even if the target does not exist.
func (w workspace) follow(path string) (*os.Root, string, error) {
	inside := w.contains(path)
	for range 40 {
		root, name, err := w.root(path)
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
		if path = filepath.Clean(target); inside && !w.contains(path) {
			return nil, "", fmt.Errorf("%s: a symbolic link leads out of the workspace", path)
		}
	}
	return nil, "", fmt.Errorf("%s: too many levels of symbolic links", path)
}

func (w workspace) contains(path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(string(w), "/")+"/")
}

// root splits an absolute path into a directory and the rest. The directory is the workspace if
// path is inside it, and otherwise the nearest existing directory above path.
func (w workspace) root(path string) (*os.Root, string, error) {
	dir := string(w)
	if !w.contains(path) {
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
