package guest

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/renameio/v2"
)

// bin holds the guest binary if `make build` has made one.
//
//go:embed all:bin
var bin embed.FS

const testGuest = "TRACESMITH_TEST_GUEST"

// Binary returns the host path of an executable that serves when started with ServeArg. It
// is the embedded guest, which Binary writes to the user's cache directory once, or the
// running executable if none is embedded or that directory cannot be written. A test binary
// is its own guest, so that no test runs against the code of an earlier build, unless
// testGuest names a guest that was built for it: a test binary takes twenty times as long to
// start.
func Binary() (string, error) {
	if testing.Testing() {
		if name := os.Getenv(testGuest); name != "" {
			return name, nil
		}
		return os.Executable()
	}
	raw, err := bin.ReadFile("bin/tracesmith-guest")
	if errors.Is(err, fs.ErrNotExist) {
		return os.Executable()
	}
	if err != nil {
		return "", fmt.Errorf("reading the embedded guest: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil { // without a home: a file below /tmp may belong to another user
		return os.Executable()
	}
	name, err := cached.path(cache, raw)
	if err != nil { // read-only, full, of another user
		return os.Executable()
	}
	return name, nil
}

// cachedGuest remembers which file this process has compared with the embedded guest.
// Safe for concurrent use.
type cachedGuest struct {
	mu   sync.Mutex
	file fs.FileInfo // nil before the first comparison
}

var cached cachedGuest

// path returns the path of the guest below a cache directory, and writes the guest if it is
// missing or its content differs. It compares a file again only if it has been replaced
// since.
func (c *cachedGuest) path(cache string, raw []byte) (string, error) {
	sum := sha256.Sum256(raw)
	name := filepath.Join(cache, "tracesmith", "guest-"+hex.EncodeToString(sum[:8]))
	c.mu.Lock()
	defer c.mu.Unlock()
	if fi, err := os.Stat(name); err == nil && c.file != nil && os.SameFile(fi, c.file) && fi.ModTime().Equal(c.file.ModTime()) {
		return name, nil
	}
	if there, err := os.ReadFile(name); err != nil || !bytes.Equal(there, raw) {
		if err := writeExecutable(name, raw); err != nil {
			return "", err
		}
	}
	fi, err := os.Stat(name)
	c.file = fi
	return name, err
}

// writeExecutable writes an executable atomically, also if the machine loses power. This
// process starts no program meanwhile: a child that has not yet become its program holds
// every descriptor, and a file that is open for writing cannot be executed.
func writeExecutable(name string, raw []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)), renameio.WithStaticPermissions(0o755))
	if err != nil {
		return err
	}
	if _, err := f.Write(raw); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	return nil
}
