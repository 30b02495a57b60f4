package cli

import (
	"cmp"
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
		Short: "Drive one environment: by hand, in JSON, or over MCP",
		Long: `Drive one debugging environment by hand or from any language.

On a terminal, you get the prompt of the agent human: write a tool and its
arguments, such as: pdb command="b app.py:10". Ctrl-D or submit ends, shows your
change and grades it in a fresh sandbox. With --text, lines may be piped in.

Otherwise each line on stdin is one operation, and each line on stdout is its
answer:

  {"op":"reset"}                                    start, get instructions
  {"op":"step","tool":"pdb","arguments":{"command":"b app.py:10"}}
  {"op":"patch"}                                    the change so far
  {"op":"grade"}                                    verdict from a fresh sandbox
  {"op":"close"}

An operation may carry an id, which its answer repeats. Arguments may also be
the text of an object, as model servers send them.

With --mcp, the environment is a Model Context Protocol server on standard input
and output, for any MCP client: it offers the environment's tools, env_reset,
env_patch and env_grade. With --mcp-listen, it serves streamable HTTP, with one
environment per session.

Exit code 7: no sandbox could be started.`,
		Example: "  tracesmith env --path ./my-project --entrypoint 'python3 -m pytest -q'\n" +
			"  echo '{\"op\":\"reset\"}' | tracesmith env --task stockroom\n" +
			"  tracesmith env --mcp --task stockroom",
		Args: RangeArgs(0, 0),
	}
	f.Add(c)
	fl := c.Flags()
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !fl.Changed("text") {
			f.text = s.StdinTTY && !f.servesMCP()
		}
		return f.serve(c.Context(), s)
	}
	fl.StringVar(&f.task, "task", "", "task of the source: instance id, source/instance or id prefix")
	fl.StringVar(&f.path, "path", "", "directory of a program, instead of --task")
	fl.StringVar(&f.entrypoint, "entrypoint", "", "with --path: command that shows the bug")
	fl.StringVar(&f.debug, "debug-entrypoint", "", "with --path: what the debugger runs (default: the entrypoint)")
	fl.StringVar(&f.instructions, "instructions", "", "with --path: instructions for the agent")
	fl.StringArrayVar(&f.setup, "setup", nil, "with --path: command that installs what the program needs; may be repeated")
	fl.StringVar(&f.python, "python", "", "host interpreter to bring into the sandbox")
	f.AddSandbox(c, "")
	fl.StringVar(&f.image, "image", "", "container image, for docker (the default with --image) or kubernetes")
	fl.StringVar(&f.tools, "tools", "", "tools to offer, separated by commas, some with settings: 'pdb,{bash: {timeout: 120}}'")
	fl.BoolVar(&f.text, "text", false, "a prompt for people instead of JSON (default on a terminal)")
	fl.Float64Var(&f.timeout, "timeout", 0, "seconds that a command may take (default: sandbox.command_timeout)")
	fl.BoolVar(&f.mcp, "mcp", false, "serve MCP on standard input and output")
	fl.StringVar(&f.mcpListen, "mcp-listen", "", "serve MCP at this address (HOST:PORT; without a host: loopback)")
	return c
}

func (f *envFlags) servesMCP() bool { return f.mcp || f.mcpListen != "" }

// check refuses flags that exclude each other or have no effect.
func (f *envFlags) check(sandbox string) error {
	switch {
	case f.path == "" && f.task == "":
		return &Error{Code: ExitUsage, Try: "tracesmith tasks list", Err: errors.New("name a task with --task, or a directory with --path and --entrypoint")}
	case f.path != "" && f.task != "":
		return errors.New("give --task or --path, not both")
	case f.path != "" && f.choosesSource():
		return errors.New("--dir, --tasks and --source say where --task comes from: leave them out with --path")
	case f.task != "" && (f.entrypoint != "" || f.debug != "" || f.instructions != "" || len(f.setup) > 0):
		return errors.New("--entrypoint, --debug-entrypoint, --instructions and --setup describe the program of --path: a task has its own")
	case f.mcp && f.mcpListen != "":
		return errors.New("give --mcp or --mcp-listen, not both")
	case f.text && f.servesMCP():
		return errors.New("--text does not apply to MCP: leave it out with --mcp and --mcp-listen")
	case f.image != "" && (sandbox == "bubblewrap" || sandbox == "local"):
		return fmt.Errorf("--image needs a sandbox that runs images: choose --sandbox docker or kubernetes, not %s", sandbox)
	case f.timeout < 0:
		return fmt.Errorf("--timeout must be positive, got %g", f.timeout)
	}
	return nil
}

// config applies the flags to the loaded configuration.
func (f *envFlags) config(s *State) (configs.Config, error) {
	cfg, err := f.Load(s)
	if err != nil {
		return cfg, err
	}
	if err := f.check(cfg.Sandbox.Kind); err != nil {
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
	if source, rest, ok := strings.Cut(f.task, "/"); ok && !f.choosesSource() && len(f.files) == 0 {
		cfg.Tasks.Source, f.task = source, rest
	}
	cfg.Sandbox.Image = cmp.Or(f.image, cfg.Sandbox.Image)
	cfg.Sandbox.Python = cmp.Or(f.python, cfg.Sandbox.Python)
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

// serve serves the environment as a prompt, over MCP or line by line, as the flags say.
func (f *envFlags) serve(ctx context.Context, s *State) error {
	cfg, bench, err := openBench(ctx, s, f.config)
	if err != nil {
		return err
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
	// If the reader of the output goes away, a write must fail instead of ending the
	// process, so that the sandbox is closed. The signal is caught and not ignored, because
	// programs in the sandbox would inherit an ignored signal.
	sigpipe := make(chan os.Signal, 1)
	signal.Notify(sigpipe, syscall.SIGPIPE)
	defer signal.Stop(sigpipe)
	open := func(ctx context.Context) (*envLoop, error) { return newEnvLoop(ctx, s, bench, task) }
	if f.servesMCP() {
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
	defer func() { _ = loop.env.Close(context.WithoutCancel(ctx)) }()
	if f.text {
		return runHuman(ctx, s, cfg, task, loop, bench.Toolbox.Schemas())
	}
	return serveLines(ctx, s, loop)
}

// serveLines answers the operations on standard input.
func serveLines(ctx context.Context, s *State, loop *envLoop) error {
	if err := loop.serve(ctx, s.Stdin, s.Stdout); err != nil {
		return err
	}
	if loop.resetTried && !loop.resetDone {
		return &Error{Code: ExitPreflight, Err: errors.New("no reset succeeded: see the errors in the answers")}
	}
	return loop.env.Close(ctx)
}

// newEnvLoop creates the environment of a task; reset starts its sandbox.
func newEnvLoop(ctx context.Context, s *State, bench *wire.Workbench, task schemas.Task) (*envLoop, error) {
	e, err := bench.NewEnv(ctx, task)
	if err != nil {
		return nil, &Error{Code: ExitPreflight, Err: err}
	}
	started := s.Now()
	return &envLoop{
		env:   e,
		grade: grader(bench, task),
		now:   func() float64 { return float64(s.Now().Sub(started)) / float64(time.Millisecond) },
	}, nil
}

// grader returns a function that grades patches of one task. If the task has no test
// lists, the first call finds them with a baseline run. If that fails, the next call tries
// again.
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
