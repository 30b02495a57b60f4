package guest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
)

// packed contains the compressed guest binary if `make guest` has built one. Compressed, it takes 3 MB less of
// a release of at most 100 MB.
//
//go:embed all:packed
var packed embed.FS

// embeddedGuest has the result of readEmbeddedGuest after the first call. It keeps the copy, because making one for
// each sandbox would cost more than starting the sandbox. It has no initializer, which would make the linker keep
// packed in the guest itself.
var embeddedGuest struct {
	once sync.Once
	raw  []byte
	err  error
}

func readEmbeddedGuest() ([]byte, error) {
	e := &embeddedGuest
	e.once.Do(func() { e.raw, e.err = unpackGuest() })
	return e.raw, e.err
}

func unpackGuest() ([]byte, error) {
	file, err := packed.Open("packed/tracesmith-guest.gz")
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}

// Binary returns the path, on the host, of an executable that acts as the guest when it is
// started with ServeArg. This is the embedded guest, which Binary writes to the user's cache
// directory once. If no guest is embedded, or the directory cannot be written, it is the
// running executable.
// The environment variable TRACESMITH_GUEST overrides all of them.
func Binary() (string, error) {
	if name := os.Getenv("TRACESMITH_GUEST"); name != "" {
		return name, nil
	}
	raw, err := readEmbeddedGuest()
	if errors.Is(err, fs.ErrNotExist) {
		return os.Executable()
	}
	if err != nil {
		return "", fmt.Errorf("reading the embedded guest: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil { // no home directory; do not use /tmp, where a file may belong to another user
		return os.Executable()
	}
	name, err := cached.path(cache, raw)
	if err != nil { // the directory is read-only, full or owned by another user
		return os.Executable()
	}
	return name, nil
}

// cachedGuest remembers which file this process has compared with the embedded guest.
// It is safe for concurrent use.
type cachedGuest struct {
	mu   sync.Mutex
	sum  string      // hash of the embedded guest; "" before the first call
	file fs.FileInfo // nil before the first comparison
}

var cached cachedGuest

// path returns the path of the guest below a cache directory. It writes the guest if the file
// is missing or its content differs. After the first call, it compares the content again only
// if the file has been replaced or modified.
func (c *cachedGuest) path(cache string, raw []byte) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sum == "" {
		sum := sha256.Sum256(raw)
		c.sum = hex.EncodeToString(sum[:8])
	}
	name := filepath.Join(cache, "tracesmith", "guest-"+c.sum)
	if fi, err := os.Stat(name); err == nil && c.file != nil && os.SameFile(fi, c.file) && fi.ModTime().Equal(c.file.ModTime()) {
		return name, nil
	}
	if current, err := os.ReadFile(name); err != nil || !bytes.Equal(current, raw) {
		if err := writeExecutable(name, raw); err != nil {
			return "", err
		}
	}
	fi, err := os.Stat(name)
	c.file = fi
	return name, err
}

// writeExecutable writes an executable atomically, even if the machine loses power. It holds
// ForkLock because a child between fork and exec has a copy of every descriptor, and the kernel
// does not execute a file that any process has open for writing.
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
