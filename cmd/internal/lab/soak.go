package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/hostile"
	"github.com/tracesmith/tracesmith/internal/hostile/soak"
)

func newSoak(s *cli.State) *cobra.Command {
	return cli.Group("soak", "Run the environment for long and count what goes wrong", newSoakCommands(s), newSoakSessions(s))
}

func newSoakCommands(s *cli.State) *cobra.Command {
	var f cli.ConfigFlags
	var cfg soak.Config
	var asJSON bool
	c := &cobra.Command{
		Use: "commands", Short: "Make thousands of tool calls, some of them hostile",
		Long: `Run ordinary tool calls with known answers in several environments at once,
mixed with hostile cases, and check every answer, its time, and leftover
processes. A failure names its call and case; --seed S --only CASE runs only
that case. A soak that is stopped reports its results so far.

Exit code 1: an answer hung, was mis-framed or wrong, processes were left over,
or a sandbox died.`,
		Example: "  tracesmith-lab soak commands -n 5000\n  tracesmith-lab soak commands --only 'fork bomb in Python' -n 20",
		Args:    cli.RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return soakCommands(c.Context(), s, &f, cfg, asJSON)
		},
	}
	f.Add(c)
	fl := c.Flags()
	fl.IntVarP(&cfg.Calls, "calls", "n", 100_000, "calls to make")
	f.AddSandbox(c, " (default bubblewrap)")
	fl.IntVar(&cfg.Workers, "workers", 6, "environments to run at once")
	fl.Uint64Var(&cfg.Seed, "seed", 1, "seed of the calls")
	fl.Float64Var(&cfg.Share, "share", 0.05, "share of hostile cases, 0 to 1")
	fl.StringVar(&cfg.Only, "only", "", "run only this case")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func soakCommands(ctx context.Context, s *cli.State, f *cli.ConfigFlags, cfg soak.Config, asJSON bool) error {
	if cfg.Calls < 1 || cfg.Workers < 1 || cfg.Share < 0 || cfg.Share > 1 {
		return cli.Usage(errors.New("-n and --workers must be at least 1, --share between 0 and 1"))
	}
	settings, err := f.Load(s)
	if err != nil {
		return err
	}
	settings.Sandbox.Kind = cmp.Or(settings.Sandbox.Kind, "bubblewrap")
	// Hostile cases exhaust small limits quickly, at little cost for the host.
	settings.Sandbox.Memory, settings.Sandbox.Disk, settings.Sandbox.Processes = 384<<20, 96<<20, 128
	settings.Agent.Tools = configs.Tools("bash", "pdb", "view", "grep", "edit", "listdir", "eval")
	bench, err := wire.NewWorkbench(ctx, settings, s.Host())
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { _ = bench.Close() }()
	bench.Source = hostile.Repository{}
	tasks, err := bench.Source.Tasks(ctx)
	if err != nil {
		return err
	}
	cfg.Isolated = settings.Sandbox.Kind != "local"
	cfg.Open = func(ctx context.Context) (env.Env, func() env.Sandbox, error) {
		var current env.Sandbox
		e, err := bench.NewEnvOn(ctx, hookedDriver{bench.Driver(tasks[0]), func(sb env.Sandbox) { current = sb }}, tasks[0])
		return e, func() env.Sandbox { return current }, err
	}
	reports := 0
	cfg.Progress = func(r soak.Report) {
		if s.TTY {
			fmt.Fprintf(s.Stderr, "\r\x1b[K%s", soakLine(r, cfg.Calls))
		} else if r.Calls > 0 { // print the first report after an answer, and then every 30th
			if reports++; reports%30 == 1 {
				fmt.Fprintln(s.Stderr, soakLine(r, cfg.Calls))
			}
		}
	}
	r, err := soak.Run(ctx, cfg)
	if s.TTY {
		fmt.Fprintln(s.Stderr)
	}
	if errors.Is(err, soak.ErrNoCase) {
		return cli.Usage(err)
	}
	if err != nil {
		return &cli.Error{Code: cli.ExitPreflight, Err: err}
	}
	if asJSON {
		err = cli.PrintJSON(s, r)
	} else {
		err = printSoak(s, r)
	}
	if err == nil && !r.OK() {
		err = fmt.Errorf("the soak failed: %s (seed %d)", nonZeroCounts(r), r.Seed)
	}
	return errors.Join(err, ctx.Err())
}

// soakLine returns the progress in one line that fits a terminal.
func soakLine(r soak.Report, calls int) string {
	return fmt.Sprintf("%d of %d calls, %.0f/s, %d hostile: %s", r.Calls, calls, float64(r.Calls)/max(r.Wall, 0.001), r.Hostile, nonZeroCounts(r))
}

// nonZeroCounts lists the counts of problems that are not 0.
func nonZeroCounts(r soak.Report) string {
	var out []string
	for _, c := range []struct {
		n     int
		label string
	}{{r.Hung, "hung"}, {r.Late, "late"}, {r.Misframed, "mis-framed"}, {r.Wrong, "wrong"}, {r.Leftover, "with processes left"}, {r.Failed, "failed"}, {r.Lost, "sandboxes lost"}} {
		if c.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.n, c.label))
		}
	}
	if len(out) == 0 {
		return "no problems"
	}
	return strings.Join(out, ", ")
}

func printSoak(s *cli.State, r soak.Report) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	printSurfaces := func(hostile bool) {
		for _, surface := range slices.Sorted(maps.Keys(r.Surfaces)) {
			if tool, isHostile := strings.CutPrefix(surface, "hostile "); isHostile == hostile {
				row("  "+tool, "%d", r.Surfaces[surface])
			}
		}
	}
	row("calls", "%d in %.0f s, %d workers, seed %d", r.Calls, r.Wall, r.Workers, r.Seed)
	row("ordinary", "%d, median %.2f ms, p99 %.2f ms", r.Calls-r.Hostile, r.Median, r.P99)
	printSurfaces(false)
	row("hostile", "%d, %d different cases", r.Hostile, len(r.Cases))
	printSurfaces(true)
	row("hung", "%d", r.Hung)
	late := ""
	if r.Late > 0 {
		late = fmt.Sprintf(", worst by %.0f ms: %s", r.WorstLate, r.LateCase)
	}
	row("late", "%d%s", r.Late, late)
	row("mis-framed", "%d", r.Misframed)
	row("wrong", "%d", r.Wrong)
	row("processes left", "%d", r.Leftover)
	row("failed", "%d", r.Failed)
	row("sandboxes", "%d, lost %d", r.Sandboxes, r.Lost)
	row("grown", "%d descriptors, %d goroutines, %.1f MiB of heap", r.Leaked.Descriptors, r.Leaked.Goroutines, float64(r.Leaked.HeapBytes)/(1<<20))
	if len(r.Cases) > 0 {
		fmt.Fprintln(w, "\ncase\tplayed")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cases)) {
		row(name, "%d", r.Cases[name])
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	for _, failure := range r.Failures {
		fmt.Fprintf(s.Stdout, "\n%s\n", failure)
	}
	return nil
}

// hookedDriver is a driver that passes each new sandbox to started.
type hookedDriver struct {
	env.Driver
	started func(env.Sandbox)
}

func (d hookedDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := d.Driver.Start(ctx, spec)
	if err == nil {
		d.started(sb)
	}
	return sb, err
}
