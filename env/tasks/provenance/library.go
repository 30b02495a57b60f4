package provenance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/tracesmith/tracesmith/schemas"
)

// A repository counts as a copy if at least CopyMinFunctions of its functions, and at least the share CopyShare of
// all, also occur in one other repository.
const (
	CopyShare        = 0.5
	CopyMinFunctions = 3
)

// Library holds the hashes of many repositories and tasks. It is safe for concurrent use if no hashes are added at the
// same time.
type Library struct {
	functions map[string][]string // hash -> repositories, sorted
	benchmark map[string]string   // repository -> benchmark
	tasks     map[taskName]TaskHashes
}

// Repos returns the number of repositories in the library.
func (l *Library) Repos() int { return len(l.benchmark) }

// Add adds the hashes of a repository. It may be called several times for different versions of a repository.
func (l *Library) Add(p RepoHashes) {
	if l.functions == nil {
		l.functions, l.benchmark = map[string][]string{}, map[string]string{}
	}
	l.benchmark[p.Repo] = p.Benchmark
	for _, f := range p.Functions {
		if at, found := slices.BinarySearch(l.functions[f], p.Repo); !found {
			l.functions[f] = slices.Insert(l.functions[f], at, p.Repo)
		}
	}
}

// Hash returns a hash of the repositories in the library, or "" if it is empty or nil.
func (l *Library) Hash() string {
	if l == nil || len(l.benchmark) == 0 {
		return ""
	}
	return schemas.ShortHash([]any{l.functions, l.benchmark})
}

// CopiedFrom returns the repository that most of the given functions come from, its benchmark, and the number of functions
// that it shares. It returns "" if they are not from a copy. functions must not contain duplicates.
func (l *Library) CopiedFrom(functions []string) (repo, benchmark string, shared int) {
	count := map[string]int{}
	for _, f := range functions {
		for _, name := range l.functions[f] {
			count[name]++
		}
	}
	for name, n := range count {
		if n > shared || n == shared && name < repo {
			repo, shared = name, n
		}
	}
	if shared < CopyMinFunctions || float64(shared) < CopyShare*float64(len(functions)) {
		return "", "", 0
	}
	return repo, l.benchmark[repo], shared
}

// AddTask adds a task. It returns an error if the library contains the task with other texts.
func (l *Library) AddTask(p TaskHashes) error {
	if l.tasks == nil {
		l.tasks = map[taskName]TaskHashes{}
	}
	name := taskName{p.Benchmark, p.Instance}
	if old, found := l.tasks[name]; found && schemas.Hash(old) != schemas.Hash(p) {
		return fmt.Errorf("task %s of %s occurs twice with different texts: leave out one of them, or give its benchmark another name (tasks hashes --benchmark)",
			p.Instance, p.Benchmark)
	}
	l.tasks[name] = p
	return nil
}

// WriteHashes writes a file of hashes, and creates its directory. It replaces an existing file.
func WriteHashes(name string, list []RepoHashes, tasks []TaskHashes) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	for _, p := range list {
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("writing hashes: %w", err)
		}
	}
	for _, p := range tasks {
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("writing hashes: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("writing hashes: %w", err)
	}
	if err := renameio.WriteFile(name, text.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(name)), renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("writing hashes: %w", err)
	}
	return nil
}

// ReadHashes adds the hashes in a file to the library. Errors name the file and the line.
func (l *Library) ReadHashes(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading hashes: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("reading hashes: %s is not a regular file: name a file that \"tasks hashes\" wrote", name))
	}
	lines, err := l.read(f)
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("line %d has more than %d MB", lines+1, maxHashesLine>>20)
	}
	if err != nil {
		return fmt.Errorf("reading hashes: %s: %w", name, err)
	}
	if lines == 0 {
		return fmt.Errorf("reading hashes: %s is empty: name a file that \"tasks hashes\" wrote", name)
	}
	return nil
}

func (l *Library) read(r io.Reader) (lines int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxHashesLine)
	for n := 1; in.Scan(); n++ {
		if err := l.line(in.Bytes()); err != nil {
			return lines, fmt.Errorf("line %d: %w", n, err)
		}
		lines++
	}
	return lines, in.Err()
}

// line adds the hashes of one line.
func (l *Library) line(text []byte) (err error) {
	var kind struct{ Schema string }
	_ = json.NewDecoder(bytes.NewReader(text)).Decode(&kind) // for invalid JSON, parseRepoHashes and parseTaskHashes return the error
	switch kind.Schema {
	case TaskHashesSchema:
		var p TaskHashes
		if p, err = parseTaskHashes(text); err == nil {
			return l.AddTask(p)
		}
	case RepoHashesSchema, "":
		var p RepoHashes
		if p, err = parseRepoHashes(text); err == nil {
			l.Add(p)
			return nil
		}
	default:
		err = fmt.Errorf("its schema is %.40q, not %s or %s", kind.Schema, RepoHashesSchema, TaskHashesSchema)
	}
	return fmt.Errorf("%w: make it again with \"tasks hashes\"", err)
}
