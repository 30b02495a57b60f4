package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A guest can be started as soon as it is written, whatever else this process
// starts meanwhile.
func TestMaterialisedWhileOthersStart(t *testing.T) {
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
					_ = exec.Command(path).Run() // what it says is of no matter
				}
			}
		})
	}
	dir := t.TempDir()
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := materialise(name, raw); err != nil {
			t.Error(err)
		}
		if err := exec.Command(name).Run(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	others.Wait()
}

// Without a cache that can be written the running executable serves.
func TestPlacedNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := placed(file, []byte("guest")); err == nil {
		t.Errorf("placed below a file: %s", name)
	}
}

func TestMaterialise(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache", "guest")
	for _, content := range []string{"one", "another"} {
		if err := materialise(name, []byte(content)); err != nil {
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
		t.Errorf("left behind: %v, %v", left, err)
	}
}
