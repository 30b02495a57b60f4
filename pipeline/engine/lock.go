package engine

import (
	"fmt"
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
	got, err := f.TryLock()
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

// Dir is the locked directory.
func (l *Lock) Dir() string { return l.dir }

// Close releases the lock.
func (l *Lock) Close() error { return l.file.Close() }
