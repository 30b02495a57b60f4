package synth

import (
	"archive/tar"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/mutate"
	"github.com/tracesmith/tracesmith/env/workspace"
)

//go:embed python/*.py
var scripts embed.FS

// Limits for sandboxes and their output.
const (
	maxAnswer      = 64 << 20         // bytes of one answer of a runner
	maxCompiled    = 64 << 20         // bytes of compiled code to keep
	helperTimeout  = 60 * time.Second // for scripts, and for requests to a runner that run no tests
	healthyTimeout = 300              // seconds, for a run of the healthy tree
)

// bench runs the tests of one healthy tree with some files replaced. Each call of run uses
// a new sandbox, so that runs cannot influence each other. A bench is not safe for
// concurrent use.
type bench struct {
	driver   env.Driver
	spec     env.SandboxSpec
	tree     *workspace.Tree
	command  command
	compiled []byte // tar archive of compiled code of the healthy tree, unpacked for every run

	mutatorSandbox env.Sandbox // has the healthy tree and the mutator; tests never run in it
	mutator        *mutate.Mutator
}

// openBench starts the mutator on the healthy tree. All benches of a repository share its compiled code.
// The first one collects the tests once to produce it.
func openBench(ctx context.Context, d env.Driver, spec env.SandboxSpec, tree *workspace.Tree, c command, shared *compiledCode) (*bench, error) {
	b := &bench{driver: d, spec: spec, tree: tree, command: c}
	err := b.startMutator(ctx)
	if err == nil {
		b.compiled, err = shared.get(func() ([]byte, error) {
			err := b.compileTests(ctx)
			return b.compiled, err
		})
	}
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

func (b *bench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if b.mutator != nil {
		_ = b.mutator.Close(ctx) // an error does not matter, because its sandbox is closed next
	}
	if b.mutatorSandbox == nil {
		return nil
	}
	return closeSandbox(ctx, b.mutatorSandbox)
}

// closeSandbox closes a sandbox, which may have died already.
func closeSandbox(ctx context.Context, sb env.Sandbox) error {
	if err := sb.Close(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, env.ErrSandboxDied) {
		return fmt.Errorf("closing a sandbox: %w", err)
	}
	return nil
}

// startMutator starts the mutator in its sandbox.
func (b *bench) startMutator(ctx context.Context) (err error) {
	if b.mutatorSandbox, err = b.start(ctx, b.tree); err != nil {
		return err
	}
	b.mutator, err = mutate.Start(ctx, mutate.Config{Sandbox: b.mutatorSandbox, Workdir: b.workdir(b.mutatorSandbox)})
	return err
}

func (b *bench) workdir(sb env.Sandbox) string { return env.WorkdirOf(sb, b.spec.Workdir) }

// scratch returns the directory in the sandbox that holds the scripts and the output of probes, which
// observe a run (see verify.Probe).
func scratch(sb env.Sandbox) string { return env.TempDirOf(sb) + "/tracesmith-synth" }

// start starts a sandbox that contains a tree, the scripts and the compiled code.
func (b *bench) start(ctx context.Context, t *workspace.Tree) (env.Sandbox, error) {
	sb, err := b.driver.Start(ctx, b.spec)
	if err != nil {
		return nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	err = unpack(ctx, sb, b.workdir(sb), t.WriteTar)
	if err == nil {
		err = unpack(ctx, sb, scratch(sb), writeScripts)
	}
	if err == nil && b.compiled != nil {
		err = sb.TarIn(ctx, b.workdir(sb), bytes.NewReader(b.compiled))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copying the repository to the sandbox: %w", err), closeSandbox(ctx, sb))
	}
	return sb, nil
}

// unpack unpacks the tar archive that write produces in a directory of a sandbox.
func unpack(ctx context.Context, sb env.Sandbox, dir string, write func(io.Writer) error) error {
	return env.Stream(write, func(r io.Reader) error { return sb.TarIn(ctx, dir, r) })
}

// writeScripts writes a tar archive of the Python scripts.
func writeScripts(w io.Writer) error {
	list, err := scripts.ReadDir("python")
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, f := range list {
		text, err := scripts.ReadFile(path.Join("python", f.Name()))
		if err == nil {
			err = out.WriteHeader(&tar.Header{Name: f.Name(), Mode: 0o644, Size: int64(len(text))})
		}
		if err == nil {
			_, err = out.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// compiledCode is the compiled code of a repository, shared by its benches. It is safe for
// concurrent use.
type compiledCode struct {
	mu    sync.Mutex
	known bool
	tar   []byte
}

// get returns the compiled code, and calls compile if that has not succeeded yet.
func (c *compiledCode) get(compile func() ([]byte, error)) (tar []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.tar, err = compile()
		c.known = err == nil
	}
	return c.tar, err
}

// compileTests collects the tests of the healthy tree and sets b.compiled to the code that Python
// compiled, which speeds up later runs.
func (b *bench) compileTests(ctx context.Context) error {
	_, err := b.runAndInspect(ctx, firstSeed, request{Compile: true, Only: []string{}, Timeout: healthyTimeout}, func(sb env.Sandbox) error {
		var kept []byte
		err := env.Stream(
			func(w io.Writer) error { return sb.TarOut(ctx, b.workdir(sb), w) },
			func(r io.Reader) (err error) {
				kept, err = b.compiledIn(r)
				return err
			},
		)
		if errors.Is(err, env.ErrRefused) { // the tests created a file that an archive cannot contain
			return nil
		}
		b.compiled = kept
		return err
	})
	return err
}

// compiledIn returns, from an archive of the tree after a run, the compiled code of the files that
// are in b.tree.
func (b *bench) compiledIn(archive io.Reader) ([]byte, error) {
	sources := b.tree.Paths()
	var kept bytes.Buffer
	out := tar.NewWriter(&kept)
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return kept.Bytes(), out.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("reading compiled code: %w", err)
		}
		dir, name := path.Split(h.Name)
		above, cached := strings.CutSuffix(dir, "__pycache__/")
		module, _, _ := strings.Cut(name, ".")
		_, known := slices.BinarySearch(sources, above+module+".py")
		if h.Typeflag != tar.TypeReg || !cached || !known || !strings.HasSuffix(name, ".pyc") || int64(kept.Len())+h.Size > maxCompiled {
			continue
		}
		if err := out.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(out, in); err != nil {
			return nil, fmt.Errorf("reading compiled code: %w", err)
		}
	}
}

// run runs the tests in a new sandbox. If the tests kill the sandbox or the runner, the
// returned run is not finished. An error is an infrastructure failure.
func (b *bench) run(ctx context.Context, seed string, q request) (run, error) {
	return b.runAndInspect(ctx, seed, q, func(env.Sandbox) error { return nil })
}

// runAndInspect is like run, but calls inspect before it closes the sandbox.
func (b *bench) runAndInspect(ctx context.Context, seed string, q request, inspect func(env.Sandbox) error) (out run, err error) {
	t, err := b.replaced(q.Files)
	if err != nil {
		return out, err
	}
	sb, err := b.start(ctx, t)
	if err != nil {
		return out, err
	}
	defer func() {
		before := b.spec.Meter.Used()
		err = errors.Join(err, closeSandbox(ctx, sb))
		if b.spec.Meter.Used() == before { // the driver does not measure sandboxes
			b.spec.Meter.Add(time.Duration(out.CPU * float64(time.Second)))
		}
	}()
	q.Runner, q.Argv, q.Module, q.Env = b.command.runner, b.command.argv, b.command.module, b.command.env
	q.Changed = slices.Sorted(maps.Keys(q.Files))
	err = b.runIn(ctx, sb, seed, q, &out.answer)
	out.sortRecords()
	if err == nil && q.Probe != nil {
		if out.probe, _, err = sb.ReadFile(ctx, scratch(sb)+"/probe", q.Probe.Limit); errors.Is(err, env.ErrNotExist) || errors.Is(err, env.ErrRefused) {
			err = nil
		}
	}
	if err == nil {
		err = b.readProbes(ctx, sb, q, &out)
	}
	if err == nil {
		err = inspect(sb)
	}
	if died, ok := errors.AsType[*env.DiedError](err); ok && died.CausedByCommand {
		out.Log, err = died.Reason, nil // the tests killed the sandbox
	}
	if err != nil {
		return run{}, fmt.Errorf("running the tests: %w", err)
	}
	return out, nil
}

// readProbes reads what the probes of r.passes wrote. A pass without a probe is left as it is.
func (b *bench) readProbes(ctx context.Context, sb env.Sandbox, q request, r *run) (err error) {
	for i, p := range r.passes {
		if p.number < 0 || p.number >= len(q.Passes) || q.Passes[p.number].Probe == nil {
			continue
		}
		r.passes[i].probe, _, err = sb.ReadFile(ctx, fmt.Sprintf("%s/probe.%d", scratch(sb), p.number), q.Passes[p.number].Probe.Limit)
		if err != nil && !errors.Is(err, env.ErrNotExist) && !errors.Is(err, env.ErrRefused) {
			return err
		}
	}
	return nil
}

// replaced returns the healthy tree with some files replaced.
func (b *bench) replaced(files map[string]string) (*workspace.Tree, error) {
	var changes []workspace.FileEdit
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, exec, link, err := b.tree.File(name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, workspace.FileEdit{Path: name, Exec: exec, Link: link, Data: []byte(files[name])})
	}
	return b.tree.Edit(changes)
}

// functionFacts are measurements of a function's source.
type functionFacts struct{ cyclomatic, lines, callers int }

// facts measures the functions of the healthy tree, by file and qualified name.
func (b *bench) facts(ctx context.Context) (map[[2]string]functionFacts, error) {
	res, err := b.mutatorSandbox.Run(ctx, env.Command{
		Args: []string{"python3", "-I", "-W", "ignore", scratch(b.mutatorSandbox) + "/tracesmith_facts.py", b.workdir(b.mutatorSandbox)}, Timeout: helperTimeout, MaxOutput: maxAnswer,
	})
	var list []struct {
		File, Name                 string
		Cyclomatic, Lines, Callers int
	}
	if err == nil {
		err = json.Unmarshal(res.Output, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("measuring functions: %w: %s", err, clip(lastLine(string(res.Output))))
	}
	out := map[[2]string]functionFacts{}
	for _, f := range list {
		out[[2]string{f.File, f.Name}] = functionFacts{f.Cyclomatic, f.Lines, f.Callers}
	}
	return out, nil
}

// firstSeed is the value of PYTHONHASHSEED for run 0.
const firstSeed = "0"

// hashSeed returns the value of PYTHONHASHSEED for a run, by its number. Runs rotate through a few
// values, so that a bug cannot depend on one order of sets.
func hashSeed(run int) string {
	seeds := [...]string{firstSeed, "1", "7", "4242", "1234567"}
	return seeds[run%len(seeds)]
}
