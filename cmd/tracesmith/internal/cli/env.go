package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/schemas"
)

// envFlags describe the one environment that `tracesmith env` drives.
type envFlags struct {
	taskFlags
	task         string
	path         string
	entrypoint   string
	debug        string
	instructions string
	setup        []string
	python       string
	image        string
	tools        string
	timeout      float64
	mcp          bool
	mcpListen    string
	text         bool
}

func newEnv(s *State) *cobra.Command {
	var f envFlags
	c := &cobra.Command{
		Use:   "env",
		Short: "Drive one environment: JSON operations on stdin, answers on stdout",
		Long: `Drive one debugging environment from any language. Each line on stdin is one
operation, each line on stdout its answer:

  {"op":"reset"}                                    start, instructions first
  {"op":"step","tool":"pdb","arguments":{"command":"b app.py:10"}}
  {"op":"patch"}                                    the change so far
  {"op":"grade"}                                    verdict from a fresh sandbox
  {"op":"close"}

An operation may carry an id, which its answer repeats. Arguments may be given as
the text of an object, as model servers send them.

With --text answers are for people, and so may operations be: reset, patch, grade,
close, or a tool and what it takes, such as: pdb b app.py:10

It ends with 7 when no sandbox could be had.

With --mcp the same environment is a Model Context Protocol server: its tools, and
env_reset, env_patch and env_grade, for any MCP client. Standard input and output
carry the protocol; --mcp-listen serves streamable HTTP, one environment per session.`,
		Example: "  echo '{\"op\":\"reset\"}' | tracesmith env --task stockroom\n" +
			"  tracesmith env --text --path ./my-project --entrypoint 'python3 -m pytest -q'\n" +
			"  tracesmith env --mcp --task stockroom",
		Args: exactArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return f.serve(c.Context(), s) },
	}
	f.add(c)
	fl := c.Flags()
	fl.StringVar(&f.task, "task", "", "task of the source: instance id, source/instance or id prefix")
	fl.StringVar(&f.path, "path", "", "a directory with a program, instead of --task")
	fl.StringVar(&f.entrypoint, "entrypoint", "", "with --path: the command that shows the bug")
	fl.StringVar(&f.debug, "debug-entrypoint", "", "with --path: what the debugger runs (default: the entrypoint)")
	fl.StringVar(&f.instructions, "instructions", "", "with --path: what the agent is told")
	fl.StringArrayVar(&f.setup, "setup", nil, "with --path: a command that installs what the program needs; may be repeated")
	fl.StringVar(&f.python, "python", "", "host interpreter to bring into the sandbox")
	f.addSandbox(c, "")
	fl.StringVar(&f.image, "image", "", "container image, for docker (what it means by itself) or kubernetes")
	fl.StringVar(&f.tools, "tools", "", "tools to offer, comma-separated, with settings if need be: 'pdb,{bash: {timeout: 120}}'")
	fl.BoolVar(&f.text, "text", false, "answer for people instead of with JSON, and take their words")
	fl.Float64Var(&f.timeout, "timeout", 0, "seconds a command may take (default: sandbox.command_timeout)")
	fl.BoolVar(&f.mcp, "mcp", false, "be an MCP server on standard input and output")
	fl.StringVar(&f.mcpListen, "mcp-listen", "", "be an MCP server at this address (HOST:PORT; without a host: loopback)")
	return c
}

// contradiction refuses flags that would be left unheard.
func (f *envFlags) contradiction(sandbox string) error {
	mcp := f.mcp || f.mcpListen != ""
	switch {
	case f.path == "" && f.task == "":
		return &Error{Code: ExitUsage, Try: "tracesmith tasks list", Err: errors.New("name a task with --task, or a directory with --path and --entrypoint")}
	case f.path != "" && f.task != "":
		return errors.New("give --task or --path, not both")
	case f.path != "" && f.named():
		return errors.New("--dir, --tasks and --source say where a --task is from: leave them out beside --path")
	case f.task != "" && (f.entrypoint != "" || f.debug != "" || f.instructions != "" || len(f.setup) > 0):
		return errors.New("--entrypoint, --debug-entrypoint, --instructions and --setup describe the program of --path: a task has its own")
	case f.mcp && f.mcpListen != "":
		return errors.New("give --mcp or --mcp-listen, not both")
	case f.text && mcp:
		return errors.New("--text is about answers to operations: leave it out beside --mcp and --mcp-listen")
	case f.image != "" && (sandbox == "bubblewrap" || sandbox == "local"):
		return fmt.Errorf("--image is for sandboxes of images: choose --sandbox docker or kubernetes, not %s", sandbox)
	case f.timeout < 0:
		return fmt.Errorf("--timeout must be positive, got %g", f.timeout)
	}
	return nil
}

// config applies the flags to the loaded configuration.
func (f *envFlags) config(s *State) (configs.Config, error) {
	cfg, err := f.load(s)
	if err != nil {
		return cfg, err
	}
	if err := f.contradiction(cfg.Sandbox.Kind); err != nil {
		return cfg, Usage(err)
	}
	if f.path != "" {
		cfg.Tasks.Source = "path"
		setup := make([]any, 0, len(f.setup))
		for _, cmd := range f.setup {
			setup = append(setup, cmd)
		}
		cfg.Tasks.With = configs.Block{
			"path": f.path, "entrypoint": f.entrypoint, "debug_entrypoint": f.debug,
			"instructions": f.instructions, "setup": setup,
		}
	}
	if source, rest, ok := strings.Cut(f.task, "/"); ok && !f.named() && len(f.files) == 0 {
		cfg.Tasks.Source, f.task = source, rest
	}
	if f.image != "" {
		cfg.Sandbox.Image = f.image
	}
	if f.python != "" {
		cfg.Sandbox.Python = f.python
	}
	if f.tools != "" {
		if cfg.Agent.Tools, err = configs.ParseTools(f.tools); err != nil {
			return cfg, Usage(fmt.Errorf("--tools: %w", err))
		}
	}
	if f.timeout > 0 {
		cfg.Sandbox.CommandTimeout = time.Duration(f.timeout * float64(time.Second))
	}
	return cfg, nil
}

// serve offers the environment in the way that was asked for.
func (f *envFlags) serve(ctx context.Context, s *State) error {
	cfg, err := f.config(s)
	if err != nil {
		return err
	}
	bench, err := wire.NewWorkbench(ctx, cfg, s.host())
	if err != nil {
		return Usage(err)
	}
	defer func() { _ = bench.Close() }()
	tasks, err := wire.SelectTasks(ctx, bench.Source, configs.Tasks{})
	if err != nil {
		return Usage(err)
	}
	task := tasks[0]
	if f.task != "" {
		if task, err = wire.FindTask(tasks, f.task); err != nil {
			return Usage(err)
		}
	}
	if cfg.Sandbox.Kind == "local" {
		fmt.Fprintln(s.Stderr, "warning: --sandbox local isolates nothing: the program runs as you, with your files and your network")
	}
	if _, err := bench.Reap(ctx, []schemas.Task{task}); err != nil && ctx.Err() == nil {
		fmt.Fprintf(s.Stderr, "warning: %v\n", err)
	}
	// A reader that goes away shall be an error of a write, so that the sandbox is
	// closed. Ignoring the signal instead would be inherited by programs.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	open := func(ctx context.Context) (*envLoop, error) { return newEnvLoop(ctx, s, bench, task) }
	if f.mcp || f.mcpListen != "" {
		m, err := newMCPEnv(task, bench.Toolbox.Schemas(), open)
		switch {
		case err != nil:
			return Usage(err)
		case f.mcpListen != "":
			return m.listen(ctx, s, f.mcpListen)
		}
		return m.serve(ctx, s)
	}
	loop, err := open(ctx)
	if err != nil {
		return err
	}
	loop.text = f.text
	return serveLines(ctx, s, loop)
}

// serveLines has a loop answer what stands on standard input.
func serveLines(ctx context.Context, s *State, loop *envLoop) error {
	defer func() { _ = loop.env.Close(context.WithoutCancel(ctx)) }()
	switch {
	case s.Typed && loop.text:
		fmt.Fprintln(s.Stderr, "type reset, then a tool and what it takes (pdb b app.py:10); Ctrl-D ends")
	case s.Typed:
		fmt.Fprintln(s.Stderr, `one JSON operation per line, {"op":"reset"} first (or use --text); Ctrl-D ends`)
	}
	if err := loop.serve(ctx, s.Stdin, s.Stdout); err != nil {
		return err
	}
	if loop.tried && !loop.began {
		return &Error{Code: ExitPreflight, Err: errors.New("no reset succeeded: the answers to them say why")}
	}
	return loop.env.Close(ctx)
}

// newEnvLoop makes the environment of a task; its sandbox starts with reset.
func newEnvLoop(ctx context.Context, s *State, bench *wire.Workbench, task schemas.Task) (*envLoop, error) {
	e, err := bench.NewEnv(ctx, task)
	if err != nil {
		return nil, &Error{Code: ExitPreflight, Err: err}
	}
	started := s.Now()
	return &envLoop{
		env:   e,
		tools: bench.Toolbox.Schemas(),
		grade: grader(bench, task),
		now:   func() float64 { return milliseconds(s.Now().Sub(started)) },
	}, nil
}

// grader judges patches of one task. A task without test lists gets its
// baseline first and keeps it; a baseline that failed is tried again.
func grader(bench *wire.Workbench, task schemas.Task) func(context.Context, []byte, string) (schemas.Verdict, error) {
	known := len(task.Tests.FailToPass) > 0 || task.Tests.Method == schemas.VerifyExitCode
	return func(ctx context.Context, patch []byte, treeSHA string) (schemas.Verdict, error) {
		if !known {
			spec, err := bench.Baseline(ctx, task)
			if err != nil {
				return schemas.Verdict{}, err
			}
			task.Tests, known = spec, true
		}
		tree, err := bench.Source.Tree(ctx, task.InstanceID)
		if err != nil {
			return schemas.Verdict{}, err
		}
		return bench.Verify(ctx, task, tree, patch, treeSHA)
	}
}
