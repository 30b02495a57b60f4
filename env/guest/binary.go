package guest

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// bin holds the guest binary where `make build` made one.
//
//go:embed all:bin
var bin embed.FS

// Binary is the host path of an executable that serves when started with
// ServeArg: the embedded guest, written out once under the user's cache
// directory, or the running executable where none is embedded or there is no
// such directory. A test binary is
// its own guest, so that no test runs against the code of an earlier build.
func Binary() (string, error) {
	if testing.Testing() {
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
	if err != nil { // without a home: whatever lies below /tmp may be anybody's
		return os.Executable()
	}
	sum := sha256.Sum256(raw)
	name := filepath.Join(cache, "tracesmith", "guest-"+hex.EncodeToString(sum[:8]))
	if fi, err := os.Stat(name); err == nil && fi.Size() == int64(len(raw)) {
		return name, nil
	}
	if err := materialise(name, raw); err != nil {
		return "", fmt.Errorf("writing the guest to %s: %w", name, err)
	}
	return name, nil
}

// materialise writes an executable whole or not at all.
func materialise(name string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "guest-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Chmod(0o755), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
