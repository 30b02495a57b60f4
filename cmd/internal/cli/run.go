package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/publish"
)

type runFlags struct {
	ConfigFlags
	fresh  bool
	retry  []string
	dryRun bool
	asJSON bool
	failOn []string
	gates  []observe.Gate // parsed from failOn
}

// NewRun returns the command run.
func NewRun(s *State) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run", Aliases: []string{"r"},
		Short: "Run or resume a batch of episodes",
		Long: `Run the selected tasks, grade every patch in a fresh sandbox, and store each
finished episode in the run directory. To resume a run, name its directory
again: stored episodes are not repeated.

The first interrupt lets running episodes finish, the second cancels them.

"tracesmith config init" writes a file with every setting and its meaning.`,
		Example: "  tracesmith run -c quickstart\n  tracesmith run -c my.yaml --run-dir runs/a -n 8 -p agent.max_steps=40",
		Args: func(c *cobra.Command, args []string) error {
			err := RangeArgs(0, 0)(c, args)
			if err != nil && slices.Contains(configs.Profiles(), args[0]) {
				return Usage(fmt.Errorf("run takes no arguments, got %d: did you mean -c %s?", len(args), args[0]))
			}
			return err
		},
		RunE: func(c *cobra.Command, _ []string) error { return Resumable(c.Context(), f.run(c.Context(), s)) },
	}
	f.Add(c)
	fl := c.Flags()
	fl.String("run-dir", "", "directory of the run; name it again to resume the run")
	fl.IntP("workers", "n", 0, "episodes to run at once")
	fl.BoolVar(&f.fresh, "fresh", false, "start over; a used run directory is moved aside, never deleted")
	fl.StringSliceVar(&f.retry, "retry", nil, "repeat episodes with this outcome: infra")
	fl.Float64("max-cost", 0, "stop before the run costs more than this many USD")
	fl.BoolVar(&f.dryRun, "dry-run", false, "check the configuration and every part of the run, estimate its cost, and run nothing")
	fl.String("nats", "", "coordinate the run on this NATS cluster; its workers (tracesmith worker) run the episodes")
	fl.StringArrayVar(&f.failOn, "fail-on", nil, "exit with 6, and do not publish, if this holds at the end, such as 'resolved_rate<0.2'; metrics: "+strings.Join(observe.GateMetrics(), ", ")+"; may be repeated")
	f.AddSandbox(c, "")
	for flag, key := range map[string]string{"run-dir": "run.dir", "workers": "run.workers", "max-cost": "limits.total_cost", "nats": "nats.url"} {
		f.stand(c, flag, key)
	}
	fl.BoolVar(&f.asJSON, "json", false, "print the summary as JSON on stdout")
	return c
}

func (f *runFlags) config(s *State) (configs.Config, error) {
	if len(f.files) == 0 && len(f.overrides) == 0 {
		return configs.Config{}, &Error{Code: ExitUsage, Try: "tracesmith run -c quickstart", Err: fmt.Errorf("name a configuration with -c: a file or a profile (%s)", strings.Join(configs.Profiles(), ", "))}
	}
	cfg, err := f.Load(s)
	if err != nil {
		return cfg, err
	}
	if cfg.Run.Dir == "" {
		return cfg, Usage(errors.New("the run needs a directory: give --run-dir DIR or set run.dir"))
	}
	for _, r := range f.retry {
		if r != "infra" {
			return cfg, Usage(fmt.Errorf("--retry %s: only infra can be run again; other outcomes are data", r))
		}
	}
	f.gates = nil
	for _, text := range f.failOn {
		g, err := observe.ParseGate(text)
		if err != nil {
			return cfg, Usage(fmt.Errorf("--fail-on: %w", err))
		}
		f.gates = append(f.gates, g)
	}
	return cfg, nil
}

// checkGates returns an error if a condition of --fail-on holds.
func (f *runFlags) checkGates(r observe.Report) error {
	var failed []string
	for _, g := range f.gates {
		if text, fails := g.Fails(r); fails {
			failed = append(failed, text)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &Error{Code: ExitCheckFailed, Err: errors.New("--fail-on: " + strings.Join(failed, "; "))}
}

func (f *runFlags) run(ctx context.Context, s *State) error {
	cfg, err := f.config(s)
	if err != nil {
		return err
	}
	if cfg.Sandbox.Kind == "local" {
		fmt.Fprintln(s.Stderr, "warning: sandbox local isolates nothing: agent code runs as you, with your files and your network")
	}
	opt := wire.RunOptions{
		Fresh: f.fresh, Retry: f.retry, Command: append([]string{"tracesmith"}, s.Args...),
		Producer: Version, Commit: commit(), Getenv: s.Getenv, Environ: s.Environ, Stdin: s.Stdin, Progress: s.Stderr, Warn: s.Stderr,
		Clock: s.Now, Hooks: s.Hooks,
	}
	if cfg.NATS.URL == "" {
		// Only Ctrl-C drains. After SIGTERM or SIGHUP, the system may kill the process before episodes finish.
		opt.Drain = s.drain("running episodes finish, no new ones start", syscall.SIGTERM, syscall.SIGHUP)
	}
	if cfg.NATS.URL != "" && !f.dryRun {
		if opt.Cluster, err = wire.Dial(ctx, cfg.NATS, time.Minute); err != nil {
			return err
		}
		defer func() { _ = opt.Cluster.Close() }()
		opt.Drain = s.drain("workers finish their episodes and start no new ones")
	}
	run, err := wire.NewRun(ctx, cfg, opt)
	if err != nil {
		return Usage(err)
	}
	defer func() { _ = run.Close() }()
	if cfg.Publish.To != "" {
		if err := checkDestination(ctx, cfg); err != nil {
			return err
		}
	}
	if f.dryRun {
		return f.plan(ctx, s, cfg, run)
	}
	return f.execute(ctx, s, cfg, run)
}

// execute runs the batch, prints the summary, and publishes the episodes if publish.to is set.
func (f *runFlags) execute(ctx context.Context, s *State, cfg configs.Config, run *wire.Run) error {
	report, err := run.Execute(ctx)
	out := runOutput{Schema: "tracesmith.run/1", Report: report}
	hasResults := report.Ledger.Reused+report.Ledger.Ran > 0
	if hasResults && !f.asJSON {
		if err == nil && cfg.Publish.To != "" && report.Data.Episodes > 0 {
			report.Next = report.FailureCommands() // only how to handle failures; publishing prints the other next steps
		}
		if writeErr := report.WriteText(s.Stdout); writeErr != nil {
			return fmt.Errorf("writing the summary: %w", writeErr)
		}
	}
	if err == nil {
		if err = f.checkGates(report); err != nil {
			out.ExitCode = ExitCheckFailed
		}
	}
	if err == nil && cfg.Publish.To != "" && report.Data.Episodes > 0 {
		var published publish.Report
		if published, err = publishRuns(ctx, s, cfg, []string{cfg.Run.Dir}); err == nil {
			out.Published = &published
		}
	}
	switch {
	case f.asJSON && report.RunID != "":
		if jsonErr := PrintJSON(s, out); jsonErr != nil {
			return jsonErr
		}
	case out.Published != nil:
		printPublished(s, *out.Published, cfg.Publish.To)
	}
	switch cause := context.Cause(ctx); {
	case err == nil && report.ExitCode != ExitOK:
		return silentExit{report.ExitCode}
	case err != nil && cause != nil && hasResults && !f.asJSON:
		return silentExit{CodeOf(cause)}
	}
	return err
}

// runOutput is what run --json prints.
type runOutput struct {
	Schema string `json:"schema"`
	observe.Report
	Published *publish.Report `json:"published"`
}

// silentExit is an error that only sets the exit code, because the output already shows the
// reason.
type silentExit struct{ code int }

func (s silentExit) Error() string { return "" }
func (s silentExit) ExitCode() int { return s.code }
