package guest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A guest can be started as soon as it has been written, even if this process starts other programs at
// the same time.
func TestNewGuestCanBeStartedAtOnce(t *testing.T) {
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command(path).Run() // only the forks matter
				}
			}
		})
	}
	dir := t.TempDir()
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := writeExecutable(name, raw); err != nil {
			t.Error(err)
		}
		if err := exec.Command(name).Run(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	others.Wait()
}

// Without a writable cache, the running executable is the guest.
func TestGuestWithoutACache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := new(cachedGuest).path(file, []byte("guest")); err == nil {
		t.Errorf("path = %s, want an error because the cache is a file", name)
	}
}

// If a cached guest has lost its content, for example in a power failure, path writes it again.
func TestDamagedGuestIsReplaced(t *testing.T) {
	raw := []byte("a guest")
	cache := t.TempDir()
	for _, content := range []string{"zeros: " + strings.Repeat("\x00", 7), "a guess", "a gue", ""} {
		name, err := new(cachedGuest).path(cache, raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		again, err := new(cachedGuest).path(cache, raw)
		if err != nil || again != name {
			t.Fatalf("path = %s, then %s: %v", name, again, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != string(raw) {
			t.Errorf("after the content %q, the cached guest is %q: %v", content, got, err)
		}
	}
}

// A process compares the content once, and compares it again if the file has changed.
func TestChangedGuestIsNoticed(t *testing.T) {
	raw := []byte("a guest")
	cache := t.TempDir()
	var guest cachedGuest
	name, err := guest.path(cache, raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeExecutable(name, []byte("a guess")); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.path(cache, raw); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != string(raw) {
		t.Errorf("the cached guest is %q: %v", got, err)
	}
}

func TestWriteExecutable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache", "guest")
	for _, content := range []string{"one", "another"} {
		if err := writeExecutable(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(name)
		fi, statErr := os.Stat(name)
		if err != nil || statErr != nil || string(raw) != content || fi.Mode().Perm() != 0o755 {
			t.Errorf("%q, %v, %v, %v", raw, fi.Mode(), err, statErr)
		}
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("files in the directory: %v, %v; want one", left, err)
	}
}

// The guest does not embed a guest: each build would contain the one before it.
func TestGuestDoesNotEmbedAGuest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "guest")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", name, "github.com/tracesmith/tracesmith/cmd/tracesmith-guest").CombinedOutput(); err != nil {
		t.Fatalf("building the guest: %v\n%s", err, out)
	}
	built, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := packed.ReadFile("packed/README")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(built, readme) {
		t.Errorf("the guest (%d bytes) contains the files of env/guest/packed", len(built))
	}
}
