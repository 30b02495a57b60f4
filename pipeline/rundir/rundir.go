// Package rundir manages run directories: the identity of a run, its lock, its files, and its
// status while it executes in one process. A run directory holds:
//
//	run.json       the identity and configuration of the run, written once
//	tasks.json     the tasks that any invocation selected
//	run.lock       held while a process uses the directory
//	engine/        private working data: queue, records, step logs
//	wire/          private working data: requests to and replies of model servers, byte for byte
//	staging/       one object per finished episode
//	run.log        what happened, by all invocations; run.log.1 holds older records
//	status.json    the state of the run, replaced whenever it changes
//	summary.json   the report of the last invocation; summary.md is the same report as text
//	dead-letters.jsonl  jobs that were given up, if any
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Dir is a run directory that this process has locked.
type Dir struct {
	Path string
	Info Info
	Lock *engine.Lock

	tasks recordedTasks
	log   *logWriter // nil: not open
}

// Open creates or opens a run directory and locks it. It returns an error, and changes nothing, if
// the directory holds another run or other files.
func Open(opt Options) (*Dir, error) {
	if err := prepare(opt.Path); err != nil {
		return nil, withCode(err)
	}
	lock, err := engine.LockDir(opt.Path)
	if err != nil {
		return nil, withCode(err)
	}
	if opt.Fresh {
		if lock, err = moveAside(lock); err != nil {
			return nil, withCode(err)
		}
	}
	identity := maps.Clone(opt.Identity)
	if identity == nil {
		identity = map[string]string{}
	}
	identity["schema"] = schemas.SchemaVersion
	info, err := ReadInfo(opt.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, err = createInfo(opt, identity)
	case err == nil:
		err = compare(opt, info, identity)
	}
	if err != nil {
		return nil, errors.Join(withCode(err), lock.Close())
	}
	tasks, err := recordTasks(opt.Path, info.Identity[legacyTasks], opt.Plan)
	if err != nil {
		return nil, errors.Join(withCode(err), lock.Close())
	}
	return &Dir{Path: opt.Path, Info: info, Lock: lock, tasks: tasks}, nil
}

// Jobs returns the number of jobs of all selections of the run so far.
func (d *Dir) Jobs() int { return len(d.tasks.Tasks) * d.tasks.Attempts }

// OpenLog returns a logger that appends to run.log, the size of which is bounded. clean removes
// secrets from a text.
func (d *Dir) OpenLog(clean func(string) string) (*slog.Logger, error) {
	logger, w, err := newLogger(d.LogPath(), clean)
	d.log = w
	return logger, withCode(err)
}

// LogPath returns the path of run.log.
func (d *Dir) LogPath() string { return filepath.Join(d.Path, logFile) }

// Close closes the log and releases the lock.
func (d *Dir) Close() error {
	var err error
	if d.log != nil {
		err = d.log.Close()
	}
	return errors.Join(err, d.Lock.Close())
}

// Replace atomically writes a file of the directory, which may exist.
func (d *Dir) Replace(name string, body []byte) error {
	return withCode(replaceFile(filepath.Join(d.Path, name), body))
}

// Remove removes a file or subdirectory of the directory, if it exists.
func (d *Dir) Remove(name string) error {
	if err := os.RemoveAll(filepath.Join(d.Path, name)); err != nil {
		return withCode(fmt.Errorf("removing a file of the run directory: %w", err))
	}
	return nil
}

// prepare creates the directory. It returns an error if the directory exists and holds files other
// than those of a run.
func prepare(dir string) error {
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("creating run directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading run directory: %w", err)
	}
	own := func(e os.DirEntry) bool { return e.Name() == engine.LockFile || strings.HasPrefix(e.Name(), infoFile) }
	if len(entries) == 0 || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == infoFile }) {
		return nil
	}
	if i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return !own(e) }); i >= 0 {
		return &Error{
			Err:    fmt.Errorf("%s is not a run directory and not empty (it holds %s)", dir, entries[i].Name()),
			Remedy: "choose another --run-dir",
		}
	}
	return nil
}

// moveAside renames a used directory to the first free NAME.n and locks a new, empty one.
func moveAside(lock *engine.Lock) (*engine.Lock, error) {
	dir := filepath.Clean(lock.Dir())
	if _, err := os.Lstat(filepath.Join(dir, infoFile)); errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.%d", dir, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(dir, aside); err != nil {
			return nil, errors.Join(fmt.Errorf("moving the used run directory aside: %w", err), lock.Close())
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		break
	}
	if err := lock.Close(); err != nil {
		return nil, fmt.Errorf("unlocking the old run directory: %w", err)
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	return engine.LockDir(dir)
}
