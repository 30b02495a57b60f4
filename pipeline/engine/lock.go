package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// LockFile is the name of the lock inside a run directory.
const LockFile = "run.lock"

// Lock is this process's exclusive lock of a run directory. The kernel releases it
// when the process dies.
type Lock struct {
	dir  string
	file *flock.Flock
}

// LockDir locks dir, which must exist. If another process holds the lock, it returns
// a *LockedError that names the holder.
func LockDir(dir string) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	f := flock.New(path, flock.SetPermissions(0o600))
	got, err := tryLock(f)
	if err != nil {
		return nil, fmt.Errorf("locking run directory: %w", err)
	}
	if !got {
		note, _ := os.ReadFile(path) // without the note the message does not name the holder
		return nil, &LockedError{Dir: dir, Holder: strings.TrimSpace(string(note[:min(len(note), 200)]))}
	}
	host, _ := os.Hostname()
	note := fmt.Sprintf("pid %d on %s, since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	if err := os.WriteFile(path, []byte(note), 0o600); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("writing lock note: %w", err)
	}
	return &Lock{dir: dir, file: f}, nil
}

// tryLock waits briefly if another process has an exclusive lock, because that process may be
// about to end. It waits up to sharedLockPatience for shared locks, which Locked holds only for
// a moment. It counts tries instead of measuring time, because a busy machine may suspend this
// process.
func tryLock(f *flock.Flock) (got bool, err error) {
	const tries, pause = 20, 15 * time.Millisecond
	for start, refused := time.Now(), 0; refused < tries && time.Since(start) < sharedLockPatience; refused++ {
		if got, err := f.TryLock(); got || err != nil {
			return got, err
		}
		shared, err := f.TryRLock()
		if err != nil {
			return false, err
		}
		if shared {
			refused = 0
			if err := f.Unlock(); err != nil {
				return false, err
			}
		}
		time.Sleep(pause)
	}
	return false, nil
}

// sharedLockPatience is long because a busy machine may suspend a process while it
// holds the shared lock.
const sharedLockPatience = time.Minute

// Locked reports whether a process holds the lock of dir. To find out, it takes a
// shared lock for a moment.
func Locked(dir string) (bool, error) {
	path := filepath.Join(dir, LockFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	got, err := f.TryRLock()
	if err != nil {
		return false, fmt.Errorf("checking the lock of the run directory: %w", err)
	}
	return !got, f.Close()
}

// Dir returns the locked directory.
func (l *Lock) Dir() string { return l.dir }

// Close releases the lock.
func (l *Lock) Close() error { return l.file.Close() }
