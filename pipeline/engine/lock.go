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
	got, err := take(f)
	if err != nil {
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

// take waits for a lock: briefly for that of a process, which may be about to end,
// and longer where it is shared, by those who only look (see Locked).
func take(f *flock.Flock) (got bool, err error) {
	const brief, pause = 300 * time.Millisecond, 15 * time.Millisecond
	for begun, refused := time.Now(), time.Now(); time.Since(refused) < brief && time.Since(begun) < looking; time.Sleep(pause) {
		if got, err := f.TryLock(); got || err != nil {
			return got, err
		}
		shared, err := f.TryRLock()
		if err != nil {
			return false, err
		}
		if shared {
			refused = time.Now()
			if err := f.Unlock(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// looking is for how long those who only look are waited for: on a busy machine one
// may be stopped in the middle of it.
const looking = time.Minute

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
