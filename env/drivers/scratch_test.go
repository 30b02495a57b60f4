package drivers

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// After an interrupted removal, the directory still contains the file with its owner, so that the next removal finds
// it.
func TestRemovalDeletesTheOwnerFileLast(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: only root may mount a file system that cannot be removed")
	}
	dir := filepath.Join(t.TempDir(), "scratch")
	mounted := filepath.Join(dir, "work")
	if err := os.MkdirAll(mounted, 0o755); err != nil {
		t.Fatal(err)
	}
	owner := filepath.Join(dir, scratchOwner)
	if err := os.WriteFile(owner, []byte(Self().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mounted, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	err := RemoveScratch(dir)
	if uerr := syscall.Unmount(mounted, 0); uerr != nil {
		t.Fatal(uerr)
	}
	if _, serr := os.Stat(owner); err == nil || serr != nil {
		t.Errorf("%v, %v", err, serr)
	}
	if err := RemoveScratch(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}
