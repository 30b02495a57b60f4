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

// Names in the cache: KEY/prefix is mounted, KEY/path has the PATH that follows it, KEY/hidden lists
// the places at which KEY/empty is mounted, KEY/size has the bytes of prefix, and .building-* are
// unfinished entries.
const (
	prefixDir  = "prefix"
	searchFile = "path"
	hiddenFile = "hidden"
	emptyDir   = "empty"
	sizeFile   = "size"
	building   = ".building-"
)

// DefaultCache is a directory of this user: tracesmith/setup in the user's cache directory
// ($XDG_CACHE_HOME or ~/.cache). Without a home it is a directory named after the user below the
// directory for temporary files. It may be deleted whenever nothing runs.
func DefaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "tracesmith", "setup")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tracesmith-setup-%d", os.Getuid()))
}

// openCache makes the directory, or accepts one that only this user can enter, because every sandbox runs
// programs from it. Sandboxes need not reach the path itself; the entries are mounted.
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

// Cache is a directory of set-up results that any number of processes share. Who
// uses an entry, or builds one, holds a lock on its directory, which the kernel
// drops with the process.
type Cache struct {
	Dir   string // see openCache; made when first needed
	Limit int64  // bytes of all entries together; 0 = none
}

// maxIdle is how long an entry stays that nothing uses.
const maxIdle = 60 * 24 * time.Hour

// Leftovers implements env.Keeper: builds that were killed, entries unused for
// long, and the least recently used ones as far as the rest exceeds the limit.
// What a live process uses is not among them.
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
	var whole []entry
	var out []env.Leftover
	total := int64(0)
	for _, e := range entries {
		dir := filepath.Join(c.Dir, e.Name())
		fi, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), building) {
			// One that is being made is locked a moment after it is there.
			if time.Since(fi.ModTime()) > time.Minute {
				out = append(out, c.leftover("set-up build", dir, fi.ModTime()))
			}
			continue
		}
		var path unix.Stat_t
		if unix.Stat(filepath.Join(dir, searchFile), &path) == nil {
			size := sizeOf(dir)
			whole, total = append(whole, entry{dir, time.Unix(path.Atim.Unix()), size}), total+size // Builder.use sets the time
		}
	}
	slices.SortFunc(whole, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range whole {
		over := c.Limit > 0 && total > c.Limit
		if (over || time.Since(e.used) > maxIdle) && !inUse(e.dir) {
			total -= e.size
			out = append(out, c.leftover("set-up result", e.dir, e.used))
		}
	}
	return slices.DeleteFunc(out, func(l env.Leftover) bool { return inUse(l.Name) }), nil
}

// leftover is a directory whose lock must be had before it goes.
func (c Cache) leftover(kind, dir string, since time.Time) env.Leftover {
	return env.Leftover{Kind: kind, Name: dir, Since: since, Remove: func(context.Context) error {
		f, err := lock(dir, tryLock)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errInUse) {
			return nil // gone, or in use again
		}
		if err != nil {
			return err
		}
		defer f.Close()
		// Renamed first: half an entry must not look like one.
		gone := filepath.Join(c.Dir, building+rand.Text())
		if err := os.Rename(dir, gone); err != nil {
			return err
		}
		return os.RemoveAll(gone)
	}}
}

// errInUse means that another process has locked the directory.
var errInUse = errors.New("the directory is in use")

// tryLock takes an exclusive lock without waiting; errInUse if it is not free.
func tryLock(f *flock.Flock) error {
	got, err := f.TryLock()
	if err == nil && !got {
		err = errInUse
	}
	return err
}

// lock locks a directory with take, a method of flock.Flock or tryLock. It returns
// os.ErrNotExist if the directory was removed or replaced meanwhile. The caller closes
// the lock.
func lock(dir string, take func(*flock.Flock) error) (*flock.Flock, error) {
	f := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if err := take(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	ours, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(dir); err == nil && !os.SameFile(ours, now) {
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

// sizeOf is what an entry holds, counted once and written beside it.
func sizeOf(dir string) int64 {
	note := filepath.Join(dir, sizeFile)
	if raw, err := os.ReadFile(note); err == nil {
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
			n += fi.Size() + 512 // and an inode
		}
		return nil
	})
	_ = os.WriteFile(note, strconv.AppendInt(nil, n, 10), 0o600) // counted again if this fails
	return n
}
