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
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// PrintsSchema is that of a line of a file of prints.
const PrintsSchema = "tracesmith.hashes/1"

// Prints is what a repository is known by, whatever it is called: a line of a file
// of them. A function's hash is of its name and its code without positions,
// comments, docstrings and long literals (env/mutate, Function.Before): neither
// another layout of the text nor another path hides a copy.
type Prints struct {
	Schema    string   `json:"schema"`
	Repo      string   `json:"repo"`      // canonical name, or local/NAME
	Benchmark string   `json:"benchmark"` // whose tasks come from it
	Trees     int      `json:"trees"`     // how many states of it
	Functions []string `json:"functions"` // SHA-256 in hex, sorted, each once
}

// Add puts functions in, in order and each once.
func (p *Prints) Add(functions []string) {
	p.Functions = append(p.Functions, functions...)
	slices.Sort(p.Functions)
	p.Functions = slices.Compact(p.Functions)
}

// A repository is a copy where at least CopyShare of its functions, and CopyLeast of
// them, stand in one other.
const (
	CopyShare = 0.5
	CopyLeast = 3
)

// Library is the prints of many repositories and tasks. Safe for concurrent use
// once it is filled.
type Library struct {
	functions map[string][]string // hash -> repositories, sorted
	benchmark map[string]string   // repository -> benchmark
	tasks     map[taskName]TaskPrints
}

// Repos is how many repositories it knows.
func (l *Library) Repos() int { return len(l.benchmark) }

// Add puts prints in; several of one repository are its versions.
func (l *Library) Add(p Prints) {
	if l.functions == nil {
		l.functions, l.benchmark = map[string][]string{}, map[string]string{}
	}
	l.benchmark[p.Repo] = p.Benchmark
	for _, f := range p.Functions {
		if at, known := slices.BinarySearch(l.functions[f], p.Repo); !known {
			l.functions[f] = slices.Insert(l.functions[f], at, p.Repo)
		}
	}
}

// Hash identifies what it knows; "" for nothing.
func (l *Library) Hash() string {
	if l == nil || len(l.benchmark) == 0 {
		return ""
	}
	return schemas.ShortHash([]any{l.functions, l.benchmark})
}

// Copy is the repository that functions are mostly of, with its benchmark and how
// many of them it has; "" if there is none. functions holds each once.
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

// WritePrints writes a file of prints, in the place of an older one; its directory
// is made.
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
	f, err := os.CreateTemp(filepath.Dir(name), ".hashes-*")
	if err != nil {
		return fmt.Errorf("writing hashes: %w", err)
	}
	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing hashes: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Bounds of a file of prints.
const (
	maxPrintsLine = 64 << 20
	maxFunctions  = 1 << 20 // of a repository
)

var functionHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ReadPrints adds a file of prints to a library. An error names the line.
func (l *Library) ReadPrints(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading hashes: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("reading hashes: %s is no regular file: name one that \"tasks hashes\" wrote", name))
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

// line adds what a line holds.
func (l *Library) line(text []byte) (err error) {
	var kind struct{ Schema string }
	_ = json.NewDecoder(bytes.NewReader(text)).Decode(&kind) // what is wrong is said below
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

// strictly decodes one JSON object without anything that into does not know.
func strictly(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("it is no line of hashes (%s)", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func parsePrints(line []byte) (p Prints, err error) {
	if err := strictly(line, &p); err != nil {
		return p, err
	}
	switch {
	case p.Schema != PrintsSchema:
		return p, fmt.Errorf("its schema is not %s", PrintsSchema)
	case p.Repo == "" || p.Benchmark == "":
		return p, errors.New("it names no repo or no benchmark")
	case len(p.Functions) > maxFunctions:
		return p, fmt.Errorf("it has more than %d functions", maxFunctions)
	}
	for _, f := range p.Functions {
		if !functionHash.MatchString(f) {
			return p, fmt.Errorf("%.70q is no hash of a function", f)
		}
	}
	return p, nil
}
