package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// Space is how many bytes must be free on a disk.
type Space struct {
	Fail uint64 // below it, the check fails
	Warn uint64 // below it, the check warns
}

// Space that the engine needs in the run directory, and that sandboxes need for temporary files.
var (
	RunSpace  = Space{Fail: engine.MinFree, Warn: 2 << 30}
	TempSpace = Space{Fail: 64 << 20, Warn: 1 << 30}
)

// Disk checks the free space of the disk on which dir is or will be. purpose says what dir holds.
func Disk(purpose, dir string, need Space) Check {
	return func(context.Context) []Result {
		place, err := existing(dir)
		var st syscall.Statfs_t
		if err == nil {
			err = syscall.Statfs(place, &st)
		}
		if err != nil {
			return []Result{Fail("disk", fmt.Errorf("%s in %s: %w", purpose, dir, err))}
		}
		free := st.Bavail * uint64(st.Bsize)
		switch {
		case free < need.Fail:
			return []Result{Fail("disk", &engine.DiskFullError{Dir: purpose + " " + dir, Free: free, Floor: need.Fail})}
		case free < need.Warn:
			return []Result{warn("disk", "free some space before a long run", "%s: only %s free in %s", purpose, size(free), dir)}
		}
		return []Result{ok("disk", "%s: %s free in %s", purpose, size(free), dir)}
	}
}

// existing returns dir, or the nearest directory above it that exists.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		_, err = os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir, err
		}
		dir, err = filepath.Dir(dir), nil
	}
	return dir, err
}

// size formats a number of bytes.
func size(n uint64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
