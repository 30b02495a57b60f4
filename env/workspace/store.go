// Package workspace stores states of a repository on the host, and compares and patches them.
//
// A Tree is the state that a task starts from: the files of a directory, an fs.FS or a
// tar file. It is hashed once, and the hashes are checked when the files are written to
// a sandbox. A Store keeps later states as git objects: it imports the tar stream of a
// workspace, compares two states, makes and applies patches, and writes a state as a
// deterministic tar.
//
// A Store has no work tree, so names, symlinks, .gitattributes and hooks that an agent
// leaves behind are only data and have no effect. The package itself reads and writes
// objects (in the loose object format of gitformat-loose). To make and apply patches and
// to read other repositories, it runs the git program without any configuration of the
// host.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/singleflight"

	"github.com/tracesmith/tracesmith/env"
)

// Store is a bare object store in one directory. It is safe for concurrent use by
// several goroutines and processes, because objects are only added and never changed. It
// is meant for a directory that is deleted when the processes that use it have ended: a
// power failure can damage it, because it does not sync what it writes, which would take
// an fsync for every file of a repository.
type Store struct {
	dir     string // contains the objects, the index of imported trees and the placements
	git     string // the bare repository below dir
	program string // the git program
	built   singleflight.Group

	// Only in the store of a History: the objects directory of another repository, and its file
	// of shallow commits.
	objects, shallow string
}

// Limits of a workspace. It is an error if a stream exceeds them.
const (
	MaxEntries   = 200_000
	MaxFileBytes = env.MaxFileBytes
	MaxTreeBytes = 1 << 30
	MaxPathBytes = 4096
	MaxPatch     = 128 << 20 // bytes of one patch
	MaxNewBytes  = 96 << 20  // bytes of all new files in a patch; a patch encodes binary files, which makes them a third longer
)

// storeConfig is the complete configuration that git uses.
const storeConfig = `[core]
	repositoryformatversion = 0
	bare = true
	looseCompression = 1
	quotePath = true
	protectNTFS = false
	protectHFS = false
	attributesFile = /dev/null
	hooksPath = /dev/null
[gc]
	auto = 0
`

// Open opens the store in dir, and creates it (mode 0700) if it does not exist.
func Open(dir string) (*Store, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("the program git is not installed: install the package git")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening object store: %w", err)
	}
	s := &Store{dir: dir, git: filepath.Join(dir, "store.git"), program: program}
	for _, d := range []string{s.git, s.path("objects"), s.path("refs"), filepath.Join(dir, "trees"), filepath.Join(dir, "placements")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("creating object store: %w", err)
		}
	}
	for name, text := range map[string]string{"config": storeConfig, "HEAD": "ref: refs/heads/none\n"} {
		if err := writeAtomic(s.path(name), []byte(text)); err != nil {
			return nil, fmt.Errorf("creating object store: %w", err)
		}
	}
	return s, nil
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.git}, parts...)...)
}

// command describes one run of git.
type command struct {
	index string // GIT_INDEX_FILE
	stdin io.Reader
	limit int64 // maximum bytes of output; more is an error
	args  []string
}

// errTooLong means that the output of git exceeds the limit.
var errTooLong = errors.New("output is longer than allowed")

// gitError is a failure of git, with its standard error.
type gitError struct {
	verb, stderr string
	err          error
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.verb, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.verb, e.stderr)
}

func (e *gitError) Unwrap() error { return e.err }

// run runs git without any configuration, attributes or identity of the host, and returns its standard output.
func (s *Store) run(ctx context.Context, c command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.program, c.args...)
	cmd.Dir = s.git
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "GIT_DIR=" + s.git,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0",
	}
	if s.objects != "" {
		cmd.Env = append(cmd.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strconv.Quote(s.objects))
	}
	if s.shallow != "" {
		cmd.Env = append(cmd.Env, "GIT_SHALLOW_FILE="+s.shallow)
	}
	if c.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.index)
	}
	cmd.Stdin = c.stdin
	out := capped{remaining: c.limit, fail: true}
	stderr := capped{remaining: 4096}
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.args[0], ctx.Err())
	case out.exceeded:
		return nil, fmt.Errorf("git %s: %w (%d bytes)", c.args[0], errTooLong, c.limit)
	case err != nil:
		return nil, &gitError{verb: c.args[0], stderr: strings.TrimSpace(stderr.String()), err: err}
	}
	return out.Bytes(), nil
}

// capped keeps the first bytes written to it. Further writes fail, or drop their data.
type capped struct {
	bytes.Buffer
	remaining int64
	fail      bool // fail further writes instead of dropping their data
	exceeded  bool // more was written than remaining allowed
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(int64(len(p)), c.remaining)]
	c.remaining -= int64(len(keep))
	c.Buffer.Write(keep)
	if len(keep) < len(p) {
		c.exceeded = true
		if c.fail {
			return len(keep), errTooLong
		}
	}
	return len(p), nil
}

// withIndex calls fn with the name of a new temporary index file.
func (s *Store) withIndex(fn func(index string) error) error {
	dir, err := os.MkdirTemp(s.dir, "index-")
	if err != nil {
		return fmt.Errorf("making an index: %w", err)
	}
	defer os.RemoveAll(dir)
	return fn(filepath.Join(dir, "index"))
}

// writeAtomic replaces path in one step, so that readers see all or nothing.
func writeAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
