// Package workspace holds states of a repository on the host.
//
// A Tree is what a task starts from: the files of a directory, an fs.FS or a tar
// file, hashed once and checked against those hashes when they are written into a
// sandbox. A Store keeps the states that follow as git objects: it imports the tar
// stream of a workspace, compares two states, makes and applies patches, and writes
// a state as a deterministic tar.
//
// A Store has no work tree, so names, symlinks, .gitattributes and hooks that an
// agent leaves behind are data and cannot act. The package reads and writes objects
// itself (the loose object format of gitformat-loose); the git program makes and
// applies patches in a hermetic environment.
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

// Store is a bare object store in one directory. It is safe for concurrent use
// by many goroutines and processes; nothing in it is ever changed, only added.
// It is meant for a directory that lasts no longer than the processes that use it:
// what it writes is not synced, which would cost an fsync for every file of a
// repository, so a power cut can damage it.
type Store struct {
	dir   string // private: objects, index of imported trees, placements
	git   string // the bare repository below dir
	bin   string // the git program
	built singleflight.Group

	// Of a History: objects and the list of cut-off commits of another repository.
	objects, shallow string
}

// What a workspace may hold. A stream beyond it is refused.
const (
	MaxEntries   = 200_000
	MaxFileBytes = env.MaxFileBytes
	MaxTreeBytes = 1 << 30
	MaxPathBytes = 4096
	MaxPatch     = 128 << 20 // bytes of one patch
	MaxNewBytes  = 96 << 20  // bytes of all new files in a patch, which grow by a third in it
)

// storeConfig is the whole configuration git sees.
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

// Open opens the store in dir and creates it (mode 0700) where there is none.
func Open(dir string) (*Store, error) {
	bin, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("the program git is not installed: install the package git")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening object store: %w", err)
	}
	s := &Store{dir: dir, git: filepath.Join(dir, "store.git"), bin: bin}
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

// command is one run of git.
type command struct {
	index string // GIT_INDEX_FILE
	stdin io.Reader
	limit int64 // bytes of output taken; more is an error
	args  []string
}

// errTooLong ends a git program whose output passes the limit.
var errTooLong = errors.New("output is longer than allowed")

// gitError is git's refusal, with what it wrote to standard error.
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

// run executes git without any configuration, attribute or identity of the
// host, and returns its standard output.
func (s *Store) run(ctx context.Context, c command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.bin, c.args...)
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
	out := capped{left: c.limit, fail: true}
	diag := capped{left: 4096}
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.args[0], ctx.Err())
	case out.full:
		return nil, fmt.Errorf("git %s: %w (%d bytes)", c.args[0], errTooLong, c.limit)
	case err != nil:
		return nil, &gitError{verb: c.args[0], stderr: strings.TrimSpace(diag.String()), err: err}
	}
	return out.Bytes(), nil
}

// capped keeps the first bytes written to it; past them it fails or drops.
type capped struct {
	bytes.Buffer
	left int64
	fail bool // refuse further writes instead of dropping them
	full bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(int64(len(p)), c.left)]
	c.left -= int64(len(keep))
	c.Buffer.Write(keep)
	if len(keep) < len(p) {
		c.full = true
		if c.fail {
			return len(keep), errTooLong
		}
	}
	return len(p), nil
}

// withIndex runs fn with the name of an index file of its own.
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
	defer os.Remove(f.Name()) // harmless after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
