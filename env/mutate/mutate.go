package mutate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Config configures a Mutator.
type Config struct {
	Sandbox env.Sandbox
	Workdir string        // path of the repository in the sandbox
	Python  string        // interpreter in the sandbox; "" = python3
	Timeout time.Duration // of one request; 0 = 60 s
}

// Mutator is the connection to a mutator program in a sandbox. It is safe for concurrent use. Calls run
// one at a time.
type Mutator struct {
	cfg       Config
	operators []Operator

	mu     sync.Mutex
	conn   *conn // nil: not running
	script string
	listed map[string]File // as last enumerated, because Apply needs the types
}

// Start copies the mutator program into the sandbox and starts it.
func Start(ctx context.Context, cfg Config) (*Mutator, error) {
	if cfg.Python == "" {
		cfg.Python = "python3"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	archive, err := packProgram()
	if err != nil {
		return nil, fmt.Errorf("packing the mutator: %w", err)
	}
	m := &Mutator{cfg: cfg, script: path.Join(env.TempDirOf(cfg.Sandbox), "mutator.pyz"), listed: map[string]File{}}
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

// Operators returns the operators in the order in which the mutator tries them.
func (m *Mutator) Operators() []Operator { return slices.Clone(m.operators) }

// Close ends the program. It is safe to call twice.
func (m *Mutator) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stop(ctx)
}

func (m *Mutator) stop(ctx context.Context) error {
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

// Enumerate returns all sites of the files. It skips files that are not supported, including files that
// make the interpreter crash or hang.
func (m *Mutator) Enumerate(ctx context.Context, files []File) (Listing, error) {
	var out Listing
	for _, f := range files {
		var got listing
		err := m.ask(ctx, request{Op: "enumerate", File: f.Path, Lines: f.Lines, Types: f.Types}, &got)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			out.Skipped = append(out.Skipped, Skipped{f.Path, refused.Why})
		case errors.Is(err, errNoAnswer) && ctx.Err() == nil:
			out.Skipped = append(out.Skipped, Skipped{f.Path, err.Error()})
		case err != nil:
			return out, fmt.Errorf("listing the sites of %s: %w", f.Path, err)
		default:
			m.mu.Lock()
			m.listed[f.Path] = f
			m.mu.Unlock()
			out.Sites = append(out.Sites, got.Sites...)
		}
	}
	return out, nil
}

// Apply returns the mutation that changes all given sites. The sites come from Enumerate of this
// Mutator. They may be in several files and must not overlap. The error is a *RefusedError if the sites
// cannot be changed.
func (m *Mutator) Apply(ctx context.Context, sites []Site) (Mutation, error) {
	if len(sites) == 0 {
		return Mutation{}, &RefusedError{Why: "no site is given"}
	}
	r := request{Op: "apply", Sites: map[string][]string{}, Typed: map[string]map[string]map[string][]string{}}
	m.mu.Lock()
	for _, s := range sites {
		r.Sites[s.File] = append(r.Sites[s.File], s.ID)
		if t := m.listed[s.File].Types; t != nil {
			r.Typed[s.File] = t
		}
	}
	m.mu.Unlock()
	mutation, err := m.change(ctx, r)
	mutation.Sites = slices.Clone(sites)
	return mutation, err
}

// Outline returns the functions of a file.
func (m *Mutator) Outline(ctx context.Context, file string) ([]FunctionOutline, error) {
	var got outline
	if err := m.ask(ctx, request{Op: "outline", File: file}, &got); err != nil {
		return nil, fmt.Errorf("listing the functions of %s: %w", file, err)
	}
	return got.Functions, nil
}

// CallsOf maps each function ("file::name") to the functions that it may call, judging by their names.
// The result can be used as ComposeSpec.Calls.
func CallsOf(funcs []FunctionOutline) map[string][]string {
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

// change sends a request for a mutation.
func (m *Mutator) change(ctx context.Context, r request) (Mutation, error) {
	var got change
	if err := m.ask(ctx, r, &got); err != nil {
		return Mutation{}, fmt.Errorf("making a mutation: %w", err)
	}
	return Mutation{Patch: got.Patch, Funcs: got.Funcs, BodyHash: bodyHash(got.Funcs), Shape: shapeHash(got.Funcs)}, nil
}

// ask sends a request and reads its answer. If the program has ended or does not answer, ask
// kills it, and the next request starts another.
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
	return errors.Join(err, m.stop(ctx))
}
