package drivers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
)

// Names of scratch directories and of the files in them that record the owner and its tags.
const (
	scratchPrefix = "tracesmith-" // of a directory in the directory for temporary files
	scratchOwner  = "owner"       // file with the Owner
	scratchTags   = "tags"        // file with the first tag of the guest's programs
)

// MakeScratch creates a directory for this process in the directory for temporary files. Its name contains purpose. The
// caller must remove it at the end, with RemoveScratch if programs could write to it.
func MakeScratch(purpose string) (string, error) {
	dir, err := os.MkdirTemp("", scratchPrefix+purpose+"-")
	if err == nil {
		if err = os.WriteFile(filepath.Join(dir, scratchOwner), []byte(Self().String()), 0o600); err != nil {
			_ = os.RemoveAll(dir) // the first error is more useful
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a scratch directory: %w: make room there, or set TMPDIR to another directory", err)
	}
	return dir, nil
}

// TagScratch records the first tag of a guest that uses a scratch directory. If the owner dies, a later process kills
// the guest's programs with guest.KillPrograms before it removes the directory.
func TagScratch(dir string, firstTag uint64) error {
	return os.WriteFile(filepath.Join(dir, scratchTags), strconv.AppendUint(nil, firstTag, 10), 0o600)
}

// RemoveScratch removes a directory even if a program removed its own permissions on files in it. It removes the file
// with the owner last, so that Scratch.Leftovers still finds the directory after an interrupted removal.
func RemoveScratch(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return removeAll(dir)
	}
	for _, e := range entries {
		if e.Name() != scratchOwner {
			err = errors.Join(err, removeAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) // WalkDir reads the directory after this call
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Scratch finds the scratch directories of processes that have ended.
type Scratch struct{}

// Leftovers implements env.LeftoverLister.
func (Scratch) Leftovers(context.Context) ([]env.Leftover, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	var out []env.Leftover
	for _, dir := range dirs {
		raw, err := os.ReadFile(filepath.Join(dir, scratchOwner))
		if err != nil {
			continue // it is being created or removed, or belongs to another program
		}
		o, ok := ParseOwner(string(raw))
		if !ok || !o.Dead() {
			continue
		}
		l := env.Leftover{Kind: "directory", Name: dir, Remove: func(context.Context) error { return removeOrphaned(dir) }}
		if fi, err := os.Stat(filepath.Join(dir, scratchOwner)); err == nil {
			l.Since = fi.ModTime()
		}
		out = append(out, l)
	}
	return out, err
}

// removeOrphaned kills the programs that still use a directory, and removes it.
func removeOrphaned(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, scratchTags))
	if tags, numErr := strconv.ParseUint(string(raw), 10, 64); err == nil && numErr == nil {
		if err := guest.KillPrograms(tags); err != nil {
			return err // keep the directory, because only its tags identify the programs
		}
	}
	return RemoveScratch(dir)
}
