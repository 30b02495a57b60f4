package mutate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Config says where a Mutator works.
type Config struct {
	Sandbox env.Sandbox
	Workdir string        // the repository in the sandbox
	Python  string        // interpreter in the sandbox; "" = python3
	Timeout time.Duration // of one request; 0 = 60 s
}

// File is one file to look for places in.
type File struct {
	Path string // relative to Workdir
	// Lines limits the sites to those that begin on one of them, such as the ones
	// that tests run; nil: all.
	Lines []int
	// Types are the names of the types that a run saw, by function (qualified, as in
	// Site.Func) and variable. f3 then exchanges names of the same type; without
	// it, what the text shows decides.
	Types map[string]map[string][]string
}

// Site is one place and what one operator would do there. It belongs to the exact
// bytes of the file: of another version Apply refuses it.
type Site struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	EndLine  int    `json:"end_line"`
	Start    int    `json:"start"` // bytes of the file's UTF-8 text, from its first change
	End      int    `json:"end"`   // to behind its last
	Func     string `json:"func"`  // names joined by dots: Class.method, outer.inner; <module>; a class for its own body
	Operator string `json:"operator"`
	Family   string `json:"family"`
	Note     string `json:"note"` // what stands there -> what will
}

// Skipped is a file without a list of sites, and why.
type Skipped struct{ File, Why string }

// Listing is what Enumerate found.
type Listing struct {
	Sites   []Site // by file as asked for, then by place
	Skipped []Skipped
}

// Function is a function that a mutation changes.
type Function struct {
	File    string `json:"file"`
	Name    string `json:"name"` // as Site.Func
	Line    int    `json:"line"` // before the change; 0: it was not there
	EndLine int    `json:"end_line"`
	// Before and After are hashes of its tree without positions, docstrings and
	// literals of 40 characters or more, the same under every version of Python;
	// "": it is not there.
	Before string `json:"before"`
	After  string `json:"after"`
}

// Mutation is one bug.
type Mutation struct {
	Patch []byte // unified diff in git's form: healthy to buggy
	Sites []Site // what it is made of; none if it does not come from operators
	// Commit is the one that an inversion takes back.
	Commit string
	Funcs  []Function
	// BodyHash identifies the changed functions as they are after the change, in
	// whatever files: equal hashes are the same bug. SHA-256 in hex.
	BodyHash string
}

// Outlined is a function of a file, before any change.
type Outlined struct {
	Function            // After is empty
	Statements int      `json:"statements"`
	Calls      []string `json:"calls"` // last names of what it calls
}

// Operator is one way of making a mistake.
type Operator struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // what a user of the program sees
}

// RefusedError says why a file or a change cannot be worked on.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "mutation refused: " + e.Why }

// Mutator is one running program. Its methods may be called from several
// goroutines; they take turns.
type Mutator struct {
	cfg       Config
	operators []Operator

	mu     sync.Mutex
	conn   *conn // nil: not running
	script string
	seen   map[string]File // as last enumerated: Apply needs the types
}

// Start brings the program into the sandbox and runs it.
func Start(ctx context.Context, cfg Config) (*Mutator, error) {
	if cfg.Python == "" {
		cfg.Python = "python3"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	archive, err := program()
	if err != nil {
		return nil, fmt.Errorf("packing the mutator: %w", err)
	}
	m := &Mutator{cfg: cfg, script: path.Join(env.TempDirOf(cfg.Sandbox), "mutator.pyz"), seen: map[string]File{}}
	if err := cfg.Sandbox.WriteFile(ctx, m.script, archive, 0o644); err != nil {
		return nil, fmt.Errorf("placing the mutator: %w", err)
	}
	var hello greeting
	if err := m.ask(ctx, request{Op: "hello"}, &hello); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the mutator: %w", err), m.Close(ctx))
	}
	m.operators = hello.Operators
	return m, nil
}

// Operators lists what it can do, in the order of their ids' groups.
func (m *Mutator) Operators() []Operator { return slices.Clone(m.operators) }

// Close ends the program. Safe to call twice.
func (m *Mutator) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hangUp(ctx)
}

func (m *Mutator) hangUp(ctx context.Context) error {
	if m.conn == nil {
		return nil
	}
	c := m.conn
	m.conn = nil
	if err := c.term.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ending the mutator: %w", err)
	}
	return nil
}

// Enumerate lists all sites of some files. A file that cannot be worked on, even
// one that makes the interpreter crash or hang, is skipped with its reason.
func (m *Mutator) Enumerate(ctx context.Context, files []File) (Listing, error) {
	var out Listing
	for _, f := range files {
		var got listing
		err := m.ask(ctx, request{Op: "enumerate", File: f.Path, Lines: f.Lines, Types: f.Types}, &got)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			out.Skipped = append(out.Skipped, Skipped{f.Path, refused.Why})
		case errors.Is(err, errGone) && ctx.Err() == nil:
			out.Skipped = append(out.Skipped, Skipped{f.Path, err.Error()})
		case err != nil:
			return out, fmt.Errorf("listing the sites of %s: %w", f.Path, err)
		default:
			m.mu.Lock()
			m.seen[f.Path] = f
			m.mu.Unlock()
			out.Sites = append(out.Sites, got.Sites...)
		}
	}
	return out, nil
}

// Apply makes one mutation of sites that Enumerate of this Mutator has listed. They
// may lie in several files and must not overlap; a *RefusedError says what is wrong
// with them.
func (m *Mutator) Apply(ctx context.Context, sites []Site) (Mutation, error) {
	if len(sites) == 0 {
		return Mutation{}, &RefusedError{Why: "no site is given"}
	}
	r := request{Op: "apply", Sites: map[string][]string{}, Typed: map[string]map[string]map[string][]string{}}
	m.mu.Lock()
	for _, s := range sites {
		r.Sites[s.File] = append(r.Sites[s.File], s.ID)
		if t := m.seen[s.File].Types; t != nil {
			r.Typed[s.File] = t
		}
	}
	m.mu.Unlock()
	mutation, err := m.change(ctx, r)
	mutation.Sites = slices.Clone(sites)
	return mutation, err
}

// Outline lists the functions of a file.
func (m *Mutator) Outline(ctx context.Context, file string) ([]Outlined, error) {
	var got outline
	if err := m.ask(ctx, request{Op: "outline", File: file}, &got); err != nil {
		return nil, fmt.Errorf("listing the functions of %s: %w", file, err)
	}
	return got.Functions, nil
}

// CallsOf are the functions that functions call, by "file::name", as far as names
// tell: what ComposeSpec.Calls wants.
func CallsOf(funcs []Outlined) map[string][]string {
	named := map[string][]string{}
	for _, f := range funcs {
		last := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		named[last] = append(named[last], f.File+"::"+f.Name)
	}
	out := map[string][]string{}
	for _, f := range funcs {
		for _, c := range f.Calls {
			out[f.File+"::"+f.Name] = append(out[f.File+"::"+f.Name], named[c]...)
		}
	}
	return out
}

// change asks for a mutation.
func (m *Mutator) change(ctx context.Context, r request) (Mutation, error) {
	var got change
	if err := m.ask(ctx, r, &got); err != nil {
		return Mutation{}, fmt.Errorf("making a mutation: %w", err)
	}
	return Mutation{Patch: got.Patch, Funcs: got.Funcs, BodyHash: bodyHash(got.Funcs)}, nil
}

// ask sends a request and reads its answer. A program that is gone or does not
// answer is ended; the next request starts another.
func (m *Mutator) ask(ctx context.Context, r request, into answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == nil {
		term, err := m.cfg.Sandbox.Open(ctx, env.TerminalSpec{
			Args: []string{m.cfg.Python, "-I", "-W", "ignore", m.script, env.WorkdirOf(m.cfg.Sandbox, m.cfg.Workdir)}, Dir: m.cfg.Workdir,
		})
		if err != nil {
			return fmt.Errorf("running the mutator: %w", err)
		}
		m.conn = &conn{term: term}
	}
	err := m.conn.ask(ctx, r, m.cfg.Timeout, into)
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return errors.Join(err, m.hangUp(ctx))
}

// errGone: the program ended or was ended in the middle of a request.
var errGone = errors.New("the mutator did not answer")

// conn is one process.
type conn struct {
	term    env.Terminal
	pending []byte
	last    int
}

func (c *conn) ask(ctx context.Context, r request, timeout time.Duration, into answer) error {
	c.last++
	r.ID = c.last
	line, err := r.encode()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	if err := c.term.Write(ctx, line); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	said, err := c.line(ctx, deadline)
	if err != nil {
		return err
	}
	return decode(said, r, into)
}

// line reads one line of at most maxAnswer bytes.
func (c *conn) line(ctx context.Context, deadline time.Time) ([]byte, error) {
	for scanned := 0; ; {
		if n := slices.Index(c.pending[scanned:], '\n'); n >= 0 {
			line := c.pending[:scanned+n]
			c.pending = c.pending[scanned+n+1:]
			return line, nil
		}
		scanned = len(c.pending)
		if scanned > maxAnswer {
			return nil, fmt.Errorf("%w: its answer has more than %d bytes", errGone, maxAnswer)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, fmt.Errorf("%w in time", errGone)
		}
		chunk, err := c.term.Read(ctx, left)
		if errors.Is(err, io.EOF) {
			code, _ := c.term.Exit()
			return nil, fmt.Errorf("%w: it ended with exit code %d", errGone, code)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the mutator's answer: %w", err)
		}
		c.pending = append(c.pending, chunk...)
	}
}
