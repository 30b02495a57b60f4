package setup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env"
)

// Names in the cache. Each entry is a directory named after its key.
const (
	prefixDir  = "prefix"     // directory to mount at Prefix
	searchFile = "path"       // the PATH of sandboxes, without that of Prefix; its access time is that of the last use
	hiddenFile = "hidden"     // JSON list of directories to hide
	emptyDir   = "empty"      // directory to mount over hidden directories
	sizeFile   = "size"       // number of bytes in prefixDir
	building   = ".building-" // beginning of the names of unfinished entries
)

// DefaultCache returns tracesmith/setup in the user's cache directory ($XDG_CACHE_HOME or ~/.cache). If the user has no
// home directory, it returns a directory named after the user in the directory for temporary files. Users may delete
// the cache while no process of tracesmith runs.
func DefaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "tracesmith", "setup")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tracesmith-setup-%d", os.Getuid()))
}

// openCache creates the cache directory if it does not exist. It returns an error if other users can enter the
// directory, because every sandbox runs programs from it. Sandboxes do not need access to the directory, because
// drivers mount its entries.
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

// Cache is a directory of set-up results that any number of processes can share. A process that uses or builds an entry
// holds a lock on the entry's directory. The kernel releases the lock when the process ends.
type Cache struct {
	Dir   string // only this user may have access; created at first use
	Limit int64  // bytes of all entries together; 0 = no limit
}

// maxIdle is how long an unused entry is kept.
const maxIdle = 60 * 24 * time.Hour

// Leftovers implements env.LeftoverLister. It returns interrupted builds, entries that have not been used for maxIdle,
// and, if the rest exceeds the limit, the least recently used entries. It omits what a live process uses.
func (c Cache) Leftovers(context.Context) ([]env.Leftover, error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the set-up cache: %w", err)
	}
	type entry struct {
		dir  string
		used time.Time
		size int64
	}
	var complete []entry
	var out []env.Leftover
	total := int64(0)
	for _, e := range entries {
		dir := filepath.Join(c.Dir, e.Name())
		fi, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), building) {
			// A process locks a new directory only shortly after it has created it.
			if time.Since(fi.ModTime()) > time.Minute {
				out = append(out, c.leftover("set-up build", dir, fi.ModTime()))
			}
			continue
		}
		var path unix.Stat_t
		if unix.Stat(filepath.Join(dir, searchFile), &path) == nil {
			size := sizeOf(dir)
			complete, total = append(complete, entry{dir, time.Unix(path.Atim.Unix()), size}), total+size // Builder.use sets the time
		}
	}
	slices.SortFunc(complete, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range complete {
		over := c.Limit > 0 && total > c.Limit
		if (over || time.Since(e.used) > maxIdle) && !inUse(e.dir) {
			total -= e.size
			out = append(out, c.leftover("set-up result", e.dir, e.used))
		}
	}
	return slices.DeleteFunc(out, func(l env.Leftover) bool { return inUse(l.Name) }), nil
}

// leftover returns the Leftover of a directory. Its Remove locks the directory first, and keeps one that is in use.
func (c Cache) leftover(kind, dir string, since time.Time) env.Leftover {
	return env.Leftover{Kind: kind, Name: dir, Since: since, Remove: func(context.Context) error {
		f, err := lock(dir, tryLock)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errInUse) {
			return nil // removed already, or in use again
		}
		if err != nil {
			return err
		}
		defer f.Close()
		// Rename it first, so that an interrupted removal leaves no incomplete entry.
		removed := filepath.Join(c.Dir, building+rand.Text())
		if err := os.Rename(dir, removed); err != nil {
			return err
		}
		return os.RemoveAll(removed)
	}}
}

// errInUse means that another process has locked the directory.
var errInUse = errors.New("the directory is in use")

// tryLock acquires an exclusive lock without waiting. It returns errInUse if another process holds the lock.
func tryLock(f *flock.Flock) error {
	locked, err := f.TryLock()
	if err == nil && !locked {
		err = errInUse
	}
	return err
}

// lock locks a directory by calling acquire, which is tryLock or a method of flock.Flock. It returns os.ErrNotExist if
// the directory was removed or replaced meanwhile. The caller must close the lock.
func lock(dir string, acquire func(*flock.Flock) error) (*flock.Flock, error) {
	f := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if err := acquire(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	lockedInfo, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(dir); err == nil && !os.SameFile(lockedInfo, now) {
			err = os.ErrNotExist // replaced meanwhile
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func inUse(dir string) bool {
	f, err := lock(dir, tryLock)
	if err == nil {
		err = f.Close()
	}
	return errors.Is(err, errInUse)
}

// sizeOf returns the size of an entry. It counts the size once and records it in the entry.
func sizeOf(dir string) int64 {
	record := filepath.Join(dir, sizeFile)
	if raw, err := os.ReadFile(record); err == nil {
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return n
		}
	}
	var n int64
	_ = filepath.WalkDir(filepath.Join(dir, prefixDir), func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := e.Info(); err == nil {
			n += fi.Size() + 512 // 512 for the inode
		}
		return nil
	})
	_ = os.WriteFile(record, strconv.AppendInt(nil, n, 10), 0o600) // if this fails, the size is counted again
	return n
}
