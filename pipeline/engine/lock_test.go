package engine

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// Inspecting a lock returns its holder, does not block other processes, and leaves nothing behind.
func TestInspectingALockDoesNotTakeIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if held, err := Locked(dir); held || err != nil {
		t.Errorf("of nobody: %v, %v", held, err)
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err == nil {
		t.Error("looking has made a lock")
	}
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
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
			t.Errorf("held: %v, %v", held, err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	looking.Wait()
	// Who looks may be stopped in the middle of it, on a busy machine for long.
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
