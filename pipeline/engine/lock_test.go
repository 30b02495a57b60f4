package engine

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// Locked does not keep other processes from locking the directory, and creates no file.
func TestLockedDoesNotBlockLockDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if held, err := Locked(dir); held || err != nil {
		t.Errorf("Locked of an unlocked directory: %v, %v", held, err)
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err == nil {
		t.Error("Locked created the lock file")
	}
	stop := make(chan struct{})
	var checker sync.WaitGroup
	checker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := Locked(dir); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 30 {
		lock, err := LockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := Locked(dir); !held || err != nil {
			t.Errorf("Locked of a locked directory: %v, %v", held, err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	checker.Wait()
	// A busy machine may suspend a process inside Locked for a long time.
	slow := flock.New(filepath.Join(dir, LockFile), flock.SetFlag(os.O_RDONLY))
	if got, err := slow.TryRLock(); !got || err != nil {
		t.Fatal(got, err)
	}
	time.AfterFunc(time.Second, func() { _ = slow.Close() })
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}
