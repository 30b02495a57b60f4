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

// Names in the directory for temporary files: of scratch directories, and of the files in them that name the owner
// and the tags of its processes.
const (
	scratchPrefix = "tracesmith-"
	scratchOwner  = "owner"
	scratchTags   = "tags"
)

// MakeScratch makes a directory for this process in the directory for temporary files; what becomes part of its name.
// The caller removes it at the end, with RemoveScratch if programs could write to it.
func MakeScratch(what string) (string, error) {
	dir, err := os.MkdirTemp("", scratchPrefix+what+"-")
	if err == nil {
		if err = os.WriteFile(filepath.Join(dir, scratchOwner), []byte(Self().String()), 0o600); err != nil {
			_ = os.RemoveAll(dir) // the first error says more
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a scratch directory: %w: make room there, or set TMPDIR to another directory", err)
	}
	return dir, nil
}

// TagScratch records the first tag of a guest that works in a scratch directory. If its owner dies, the guest's
// programs are killed before the directory is removed; see guest.KillPrograms.
func TagScratch(dir string, tags uint64) error {
	return os.WriteFile(filepath.Join(dir, scratchTags), strconv.AppendUint(nil, tags, 10), 0o600)
}

// RemoveScratch removes a directory even if a program took away its own permissions in it. The owner's name goes last,
// so that a removal that is cut off leaves a directory that Scratch.Leftovers still finds.
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
			_ = os.Chmod(p, 0o700) // before the walk reads it
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Scratch finds the scratch directories of processes that have ended.
type Scratch struct{}

// Leftovers implements env.Keeper.
func (Scratch) Leftovers(context.Context) ([]env.Leftover, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	var out []env.Leftover
	for _, dir := range dirs {
		raw, err := os.ReadFile(filepath.Join(dir, scratchOwner))
		if err != nil {
			continue // it is being made or removed, or another program's
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

// removeOrphaned kills the programs that still work in a directory, and removes it.
func removeOrphaned(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, scratchTags))
	if tags, numErr := strconv.ParseUint(string(raw), 10, 64); err == nil && numErr == nil {
		if err := guest.KillPrograms(tags); err != nil {
			return err // keep the directory: only its tags lead to the programs
		}
	}
	return RemoveScratch(dir)
}
