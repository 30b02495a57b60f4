package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/density"
)

// sessionsFlags are the flags of soak sessions.
type sessionsFlags struct {
	cli.ConfigFlags
	run    density.Config
	limit  string
	asJSON bool
}

func newSoakSessions(s *cli.State) *cobra.Command {
	var f sessionsFlags
	c := &cobra.Command{
		Use: "sessions", Short: "Open hundreds of pdb sessions; measure their memory and speed",
		Long: `Open N environments, each a sandbox with its guest (the process inside that
serves requests), a workspace and a pdb session at a breakpoint, and keep them
all alive. A variable of the program has another value in each session, so that
an answer of the wrong session is noticed. After each step, measure the memory
of the machine and ask random sessions for their value. At the end, each session
must still answer with its own value.

Exit code 1: a session did not answer correctly, or fewer than N could be
opened.`,
		Example: "  tracesmith-lab soak sessions -n 1000 --keep 1m\n  tracesmith-lab soak sessions -n 100 --sandbox docker --step 20 --json",
		Args:    cli.RangeArgs(0, 0),
		RunE:    func(c *cobra.Command, _ []string) error { return f.soak(c.Context(), s) },
	}
	f.Add(c)
	fl := c.Flags()
	fl.IntVarP(&f.run.Sessions, "sessions", "n", 1000, "sessions to open")
	fl.IntVar(&f.run.Step, "step", 50, "sessions between two measurements")
	fl.IntVar(&f.run.Openers, "openers", 2, "sessions to open at once")
	fl.IntVar(&f.run.Asks, "asks", 200, "values to request from random sessions at each step")
	fl.DurationVar(&f.run.Keep, "keep", 0, "keep all sessions alive for this long: idle in the first half, answering requests in the second half")
	fl.Uint64Var(&f.run.Seed, "seed", 1, "seed of the choice of sessions")
	fl.StringVar(&f.run.Entrypoint, "entrypoint", density.Entrypoint, "program to debug, such as: python3 -m pytest -q "+density.ProgramName)
	f.AddSandbox(c, " (default bubblewrap)")
	fl.StringVar(&f.limit, "memory-limit", "16GiB", "stop when the sessions use more memory than this: the sum of their processes, or the decrease of the machine's available memory, whichever is larger")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *sessionsFlags) soak(ctx context.Context, s *cli.State) error {
	if f.run.Sessions < 1 || f.run.Step < 1 || f.run.Openers < 1 || f.run.Asks < 1 {
		return cli.Usage(errors.New("-n, --step, --openers and --asks must be at least 1"))
	}
	var limit configs.ByteSize
	if err := limit.UnmarshalText([]byte(f.limit)); err != nil {
		return cli.Usage(fmt.Errorf("--memory-limit: %w", err))
	}
	f.run.Memory = int64(limit)
	cfg, err := f.Load(s)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tracesmith-sessions-")
	if err != nil {
		return fmt.Errorf("making a scratch directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, density.ProgramName), density.Program, 0o644); err != nil {
		return fmt.Errorf("writing the program: %w", err)
	}
	cfg.Sandbox.Kind, cfg.Sandbox.CommandTimeout = cmp.Or(cfg.Sandbox.Kind, "bubblewrap"), 2*time.Minute
	f.run.Containers = cfg.Sandbox.Kind == "docker"
	cfg.Tasks.Source = "path"
	cfg.Tasks.With = configs.Block{"path": dir, "entrypoint": density.Entrypoint, "instance_id": "sessions"}
	bench, err := wire.NewWorkbench(ctx, cfg, s.Host())
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { _ = bench.Close() }()
	task, err := firstTask(ctx, bench, cfg.Tasks)
	if err != nil {
		return err
	}
	f.run.Open = func(ctx context.Context) (env.Env, error) { return bench.NewEnv(ctx, task) }
	f.run.Progress = func(p density.Point) {
		fmt.Fprintf(s.Stderr, "%d sessions: %s used, %s each; answers in %.2f ms (median), %.2f ms (p99)\n",
			p.Sessions, gib(p.Used), mib(p.Used/int64(p.Sessions)), p.Answered.Median, p.Answered.P99)
	}
	report, err := density.Run(ctx, f.run)
	if len(report.Points) == 0 && err != nil {
		return &cli.Error{Code: cli.ExitPreflight, Err: err}
	}
	show := printSessions
	if f.asJSON {
		show = func(s *cli.State, r density.Report) error { return cli.PrintJSON(s, r) }
	}
	if showErr := show(s, report); err == nil {
		err = showErr
	}
	switch {
	case err != nil:
		return err
	case report.Wrong > 0:
		return fmt.Errorf("%d of %d answers were not the session's own value", report.Wrong, report.Checked)
	case report.Reached < report.Asked:
		return fmt.Errorf("opened only %d of %d sessions: %s", report.Reached, report.Asked, report.Stopped)
	}
	return nil
}

// printSessions prints the memory of all sessions as a table and a plot, and the memory of one
// session as a table.
func printSessions(s *cli.State, r density.Report) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(s.Stdout, "used: decrease of the machine's available memory since before the first session")
	fmt.Fprintln(w, "sessions\tused\teach\topened in\tanswer median\tanswer p99\t")
	var maxUsed int64 = 1
	for _, p := range r.Points {
		maxUsed = max(maxUsed, p.Used)
		fmt.Fprintf(w, "%d\t%s\t%s\t%.0f ms\t%.2f ms\t%.2f ms\t\n", p.Sessions, gib(p.Used), mib(p.Used/int64(p.Sessions)),
			p.Opened.Median, p.Answered.Median, p.Answered.P99)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	fmt.Fprintln(s.Stdout, "\nMiB per session; pages that processes share are divided among them (PSS)")
	fmt.Fprintln(s.Stdout, "helper: the driver's processes outside the sandboxes; host: this process")
	fmt.Fprintln(w, "sessions\tguest\thelper\tpython\tshell\thost\tkernel\ttmpfs\t")
	for _, p := range r.Points {
		fmt.Fprintf(w, "%d\t", p.Sessions)
		m, k := p.Memory, p.Kernel
		for _, n := range []int64{m.Guest.PSS, m.Helper.PSS, m.Python.PSS, m.Shell.PSS, m.Host.PSS, k.Slab + k.Stacks + k.PageTables + k.PerCPU, k.Shmem} {
			fmt.Fprintf(w, "%.1f\t", float64(n)/float64(p.Sessions)/(1<<20))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	fmt.Fprintln(s.Stdout)
	for _, p := range r.Points {
		fmt.Fprintf(s.Stdout, "%6d %s %s\n", p.Sessions, strings.Repeat("█", int(max(p.Used, 0)*60/maxUsed)), gib(p.Used))
	}
	fmt.Fprintf(s.Stdout, "\n%d of %d sessions in %.0f s; %d answers checked, %d wrong\n", r.Reached, r.Asked, r.Wall, r.Checked, r.Wrong)
	if r.IdleCPU != nil {
		fmt.Fprintf(s.Stdout, "the idle sessions used %.2f cores together\n", *r.IdleCPU)
	}
	return nil
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
