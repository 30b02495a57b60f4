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

// Scratch is what lies below the directory for temporary files: directories that
// say whose they are, so that those of the dead can be told from the others.
type Scratch struct{}

// Names of scratch directories and of the file in them that names the owner.
const (
	scratchPrefix = "tracesmith-"
	scratchOwner  = "owner"
	scratchTags   = "tags" // see guest.KillPrograms
)

// MakeScratch makes a directory for this process; what it is for becomes part of
// its name. RemoveAll it in the end.
func MakeScratch(what string) (string, error) {
	dir, err := os.MkdirTemp("", scratchPrefix+what+"-")
	if err == nil {
		if err = os.WriteFile(filepath.Join(dir, scratchOwner), []byte(self().String()), 0o600); err != nil {
			_ = os.RemoveAll(dir) // the failure to write says more
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a scratch directory: %w: make room there, or set TMPDIR to another directory", err)
	}
	return dir, nil
}

// Leftovers implements env.Keeper.
func (Scratch) Leftovers(context.Context) ([]env.Leftover, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	var out []env.Leftover
	for _, dir := range dirs {
		raw, err := os.ReadFile(filepath.Join(dir, scratchOwner))
		if err != nil {
			continue // being made or removed, or somebody else's
		}
		o, ok := parseOwner(string(raw))
		if !ok || !o.dead() {
			continue
		}
		l := env.Leftover{Kind: "directory", Name: dir, Remove: func(context.Context) error { return removeScratch(dir) }}
		if fi, err := os.Stat(filepath.Join(dir, scratchOwner)); err == nil {
			l.Since = fi.ModTime()
		}
		out = append(out, l)
	}
	return out, err
}

// removeScratch removes a directory of the dead, after what still runs for it.
func removeScratch(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, scratchTags))
	if tags, numErr := strconv.ParseUint(string(raw), 10, 64); err == nil && numErr == nil {
		if err := guest.KillPrograms(tags); err != nil {
			return err // the directory is all that still leads to them
		}
	}
	return removeTree(dir)
}

// removeTree removes a directory even where a program took its own rights away.
// The owner's name goes last: one that is killed on the way leaves a directory of
// the dead, not one of nobody.
func removeTree(dir string) error {
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
