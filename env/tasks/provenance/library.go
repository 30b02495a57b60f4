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

// A repository counts as a copy if at least CopyLeast of its functions, and at least the share CopyShare of all, also
// occur in one other repository.
const (
	CopyShare = 0.5
	CopyLeast = 3
)

// Library holds the prints of many repositories and tasks. It is safe for concurrent use if no prints are added at the
// same time.
type Library struct {
	functions map[string][]string // hash -> repositories, sorted
	benchmark map[string]string   // repository -> benchmark
	tasks     map[taskName]TaskPrints
}

// Repos returns the number of repositories in the library.
func (l *Library) Repos() int { return len(l.benchmark) }

// Add adds the prints of a repository. It may be called several times for different versions of a repository.
func (l *Library) Add(p Prints) {
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

// Copy returns the repository that most of the given functions come from, its benchmark, and the number of functions
// that it shares. It returns "" if they are not from a copy. functions must not contain duplicates.
func (l *Library) Copy(functions []string) (repo, benchmark string, shared int) {
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
	if shared < CopyLeast || float64(shared) < CopyShare*float64(len(functions)) {
		return "", "", 0
	}
	return repo, l.benchmark[repo], shared
}

// AddTask adds a task. It returns an error if the library contains the task with other texts.
func (l *Library) AddTask(p TaskPrints) error {
	if l.tasks == nil {
		l.tasks = map[taskName]TaskPrints{}
	}
	name := taskName{p.Benchmark, p.Instance}
	if old, found := l.tasks[name]; found && schemas.Hash(old) != schemas.Hash(p) {
		return fmt.Errorf("task %s of %s occurs twice with different texts: leave out one of them, or give its benchmark another name (tasks hashes --benchmark)",
			p.Instance, p.Benchmark)
	}
	l.tasks[name] = p
	return nil
}

// WritePrints writes a file of prints, and creates its directory. It replaces an existing file.
func WritePrints(name string, list []Prints, tasks []TaskPrints) error {
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

// ReadPrints adds the prints in a file to the library. Errors name the file and the line.
func (l *Library) ReadPrints(name string) error {
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
		err = fmt.Errorf("line %d has more than %d MB", lines+1, maxPrintsLine>>20)
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
	in.Buffer(make([]byte, 64<<10), maxPrintsLine)
	for n := 1; in.Scan(); n++ {
		if err := l.line(in.Bytes()); err != nil {
			return lines, fmt.Errorf("line %d: %w", n, err)
		}
		lines++
	}
	return lines, in.Err()
}

// line adds the prints of one line.
func (l *Library) line(text []byte) (err error) {
	var kind struct{ Schema string }
	_ = json.NewDecoder(bytes.NewReader(text)).Decode(&kind) // for invalid JSON, parsePrints returns the error
	switch kind.Schema {
	case TaskPrintsSchema:
		var p TaskPrints
		if p, err = parseTaskPrints(text); err == nil {
			return l.AddTask(p)
		}
	case PrintsSchema, "":
		var p Prints
		if p, err = parsePrints(text); err == nil {
			l.Add(p)
			return nil
		}
	default:
		err = fmt.Errorf("its schema is %.40q, not %s or %s", kind.Schema, PrintsSchema, TaskPrintsSchema)
	}
	return fmt.Errorf("%w: make it again with \"tasks hashes\"", err)
}
