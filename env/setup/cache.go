package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Names in the cache: KEY/prefix is what is mounted, KEY/path the PATH to put
// behind it, .building-* what is not finished.
const (
	prefixDir  = "prefix"
	searchFile = "path"
	building   = ".building-"
)

// DefaultCache is a directory of this user's: tracesmith/setup in the user's
// cache directory ($XDG_CACHE_HOME or ~/.cache), or one named after the user
// below the directory for temporary files where there is no home. What it holds
// may be deleted at any time nothing runs.
func DefaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "tracesmith", "setup")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tracesmith-setup-%d", os.Getuid()))
}

// openCache makes the directory, or accepts one that only this user can enter:
// programs out of it run in every sandbox. Sandboxes need not reach it by its
// path; its contents are mounted.
func openCache(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("opening the set-up cache: %w", err)
	}
	owner, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || !ok || int(owner.Uid) != os.Geteuid() || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the set-up cache %s is not a directory that only you can enter: remove it, or make it yours (chown, chmod 700)", dir)
	}
	return nil
}

// sweep removes what killed builds left behind.
func sweep(dir string, older time.Duration) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the set-up cache: %w", err)
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), building) || time.Since(fi.ModTime()) < older {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("cleaning the set-up cache: %w", err)
		}
	}
	return nil
}
