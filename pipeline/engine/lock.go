package engine

import (
	"context"
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

// Lock is the exclusive right of this process to a run directory. The kernel
// releases it when the process dies, however it dies.
type Lock struct {
	dir  string
	file *flock.Flock
}

// LockDir takes the lock of dir, which must exist; a *LockedError names the
// holder if somebody has it.
func LockDir(dir string) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	f := flock.New(path, flock.SetPermissions(0o600))
	brief, cancel := context.WithTimeout(context.Background(), looking) // somebody may only look, see Locked
	defer cancel()
	got, err := f.TryLockContext(brief, looking/20)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("locking run directory: %w", err)
	}
	if !got {
		note, _ := os.ReadFile(path) // the note is a courtesy: without it the message is vaguer
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

// looking is for how long a lock is waited for that may be that of Locked.
const looking = 300 * time.Millisecond

// Locked tells whether a process holds the lock of dir. It holds it itself for a
// moment.
func Locked(dir string) (bool, error) {
	path := filepath.Join(dir, LockFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	got, err := f.TryRLock()
	if err != nil {
		return false, fmt.Errorf("looking at the lock of the run directory: %w", err)
	}
	return !got, f.Close()
}

// Dir is the locked directory.
func (l *Lock) Dir() string { return l.dir }

// Close releases the lock.
func (l *Lock) Close() error { return l.file.Close() }
