package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/chaos"
	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/sinks"
)

// chaosFlags are the flags of chaos.
type chaosFlags struct {
	cfg        chaos.Config
	kinds      []string
	fleet      bool
	workersSet bool // --workers was given
	asJSON     bool
}

func newChaos(s *cli.State) *cobra.Command {
	var f chaosFlags
	c := &cobra.Command{
		Use: "chaos", Short: "Inject faults into a run and prove that it loses nothing",
		Long: `Run a batch of scripted episodes as processes of this program, against a
scripted model server. Kill and stop the processes, fill their disk, change
their clock and make their servers fail, by a plan that depends on --seed. Then
compare the planned, staged and published episodes, compare paid with recorded
model calls, and look for leftovers. Each broken promise is reported as a breach
with a name; the exit code is 1 if there is one. To fill a disk, chaos needs
root; without root it leaves that fault out.

With --fleet, the batch runs over a cluster of three NATS servers on loopback,
also processes of this program: workers, coordinator and servers are killed.
With --store, it stages and publishes on an S3 server, behind a proxy that
refuses objects, loses answers and cuts objects in half.`,
		Example: "  tracesmith-lab chaos\n  tracesmith-lab chaos --fleet --workers 4\n  tracesmith-lab chaos --episodes 200 --faults 60 --seed 7 --json\n  tracesmith-lab chaos --kinds kill,guest --dir out/chaos",
		Args:    cli.RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			f.workersSet = c.Flags().Changed("workers")
			return f.run(c.Context(), s)
		},
		Annotations: map[string]string{cli.StoppingAnnotation: "ending the trial's processes"},
	}
	fl := c.Flags()
	fl.IntVar(&f.cfg.Episodes, "episodes", 60, "episodes of the batch")
	fl.IntVar(&f.cfg.Faults, "faults", 30, "number of faults to inject, distributed evenly over the kinds")
	fl.Uint64Var(&f.cfg.Seed, "seed", 1, "seed of the plan")
	fl.StringSliceVar(&f.kinds, "kinds", nil, fmt.Sprintf("only these faults: %v; with --fleet %v; with --sandbox docker %s instead of %s; with --store also %s (default all)",
		chaos.Kinds(), chaos.FleetKinds(), chaos.Container, chaos.Guest, chaos.StoreSilence))
	fl.BoolVar(&f.fleet, "fleet", false, "run over a cluster of three NATS servers, with a coordinator and workers")
	fl.IntVar(&f.cfg.Fleet, "workers", 3, "worker processes of a fleet, each with two episodes at once")
	fl.DurationVar(&f.cfg.Within, "within", 2*time.Second, "time for a restarted process to make its first new call")
	fl.StringVar(&f.cfg.Dir, "dir", "", "keep everything in this directory, which must be empty or new (default: temporary, removed on success)")
	fl.StringVar(&f.cfg.Sandbox, "sandbox", "bubblewrap", "sandbox kind")
	fl.StringVar(&f.cfg.Store, "store", "", "stage and publish below this s3://bucket/prefix, behind a proxy that injects faults")
	fl.StringVar(&f.cfg.Endpoint, "s3-endpoint", "", "URL of the S3 server of --store")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	cli.Must(c.RegisterFlagCompletionFunc("sandbox", cli.OneOf(env.Drivers.Kinds()...)))
	c.AddCommand(newChaosChild(s), newChaosNode())
	return c
}

// newChaosChild returns the command that the processes of a trial execute: run or worker, with
// a store and a clock that fail as planned.
func newChaosChild(s *cli.State) *cobra.Command {
	var plan string
	var clock time.Duration
	c := &cobra.Command{
		Use: "child -- run|worker ARGS", Hidden: true, Args: cli.RangeArgs(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			now := s.Now
			s.Now = func() time.Time { return now().Add(clock) }
			if plan != "" {
				s.Hooks.Staging = func(inner sinks.Store) sinks.Store { return chaos.FaultyStore(inner, plan) }
			}
			run := cli.NewRun(s)
			if args[0] == "worker" {
				run = cli.NewWorker(s)
			}
			run.SetArgs(args[1:])
			run.SilenceErrors, run.SilenceUsage = true, true
			run.SetOut(s.Stdout)
			run.SetErr(s.Stderr)
			return run.ExecuteContext(c.Context())
		},
	}
	c.Flags().StringVar(&plan, "store", "", "plan of the store's faults")
	c.Flags().DurationVar(&clock, "clock", 0, "how far the clock is off")
	return c
}

// newChaosNode returns the command that runs one NATS server of a fleet.
func newChaosNode() *cobra.Command {
	var n enginetest.Node
	c := &cobra.Command{
		Use: "node", Hidden: true, Args: cli.RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return n.Serve(c.Context()) },
	}
	fl := c.Flags()
	fl.StringVar(&n.Name, "name", "", "name of the server")
	fl.StringVar(&n.Dir, "dir", "", "directory of its store")
	fl.IntVar(&n.Port, "port", 0, "port for clients")
	fl.IntVar(&n.Route, "route", 0, "port for the other servers")
	fl.IntSliceVar(&n.Peers, "peers", nil, "routes of the others")
	return c
}

func (f *chaosFlags) run(ctx context.Context, s *cli.State) (err error) {
	cfg := &f.cfg
	if cfg.Kinds, err = chaos.ParseKinds(f.kinds, chaos.KindsOf(f.fleet, cfg.Sandbox, cfg.Store != "")); err != nil {
		return cli.Usage(err)
	}
	switch {
	case (cfg.Store == "") != (cfg.Endpoint == ""), cfg.Store != "" && !strings.HasPrefix(cfg.Store, "s3://"):
		return cli.Usage(errors.New("--store s3://BUCKET/PREFIX and --s3-endpoint URL go together"))
	case cfg.Store != "" && strings.HasPrefix(strings.TrimPrefix(cfg.Store, "s3://")+"/", "/"):
		return cli.Usage(fmt.Errorf("--store %s names no bucket: give s3://BUCKET/PREFIX", cfg.Store))
	case !isURL(cfg.Endpoint):
		return cli.Usage(fmt.Errorf("--s3-endpoint %q is not a URL: give http://HOST:PORT", cfg.Endpoint))
	case f.workersSet && !f.fleet:
		return cli.Usage(errors.New("--workers needs --fleet: a run in one process has four episodes at once"))
	case cfg.Fleet < 1 || cfg.Fleet > 64:
		return cli.Usage(fmt.Errorf("--workers must be between 1 and 64, got %d", cfg.Fleet))
	case cfg.Episodes < 2 || cfg.Episodes > chaos.MaxEpisodes:
		return cli.Usage(fmt.Errorf("--episodes must be between 2 and %d, got %d", chaos.MaxEpisodes, cfg.Episodes))
	case cfg.Faults < 1:
		return cli.Usage(fmt.Errorf("--faults must be at least 1, got %d", cfg.Faults))
	case cfg.Within <= 0:
		return cli.Usage(fmt.Errorf("--within must be more than 0, got %s", cfg.Within))
	case cfg.Faults > cfg.Episodes:
		return cli.Usage(fmt.Errorf("--faults %d: at most one for each of the %d episodes, or they hide each other; raise --episodes", cfg.Faults, cfg.Episodes))
	case !slices.Contains(env.Drivers.Kinds(), cfg.Sandbox):
		return cli.Usage(fmt.Errorf("--sandbox %s: there are %v", cfg.Sandbox, env.Drivers.Kinds()))
	}
	if !f.fleet {
		cfg.Fleet = 0
	}
	if cfg.Store != "" {
		cfg.Store = strings.TrimSuffix(cfg.Store, "/") + "/chaos-" + strings.ToLower(rand.Text())
	}
	keepDir := cfg.Dir != ""
	if cfg.Dir, err = emptyDir(cfg.Dir); err != nil {
		return cli.Usage(err)
	}
	if err := f.setCommands(s); err != nil {
		return err
	}
	if s.TTY {
		cfg.Progress = s.Stderr
	}
	cfg.OnForcedExit = func(do func() error) {
		s.SetExitHook(func() {
			if err := do(); err != nil {
				fmt.Fprint(s.Stderr, cli.Describe(err))
			}
			if _, err := os.Stat(cfg.Dir); err == nil {
				fmt.Fprintf(s.Stderr, "the trial's directory stays: %s\n", cfg.Dir)
			}
		})
	}
	report, err := chaos.Run(ctx, *cfg)
	if !keepDir && err == nil && len(report.Breaches) == 0 {
		report.Dir, err = "", errors.Join(os.RemoveAll(cfg.Dir), f.clearStore(ctx))
	} else if err != nil {
		err = f.cleanAfterFailure(ctx, keepDir, err)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		err = cli.PrintJSON(s, report)
	} else {
		err = printChaos(s, report)
	}
	if n := len(report.Breaches); err == nil && n > 0 {
		err = &cli.Error{Code: cli.ExitFailure, Err: fmt.Errorf("%d promises did not hold (seed %d): %s", n, report.Seed, report.Breaches[0].Name), Try: "look into " + report.Dir}
	}
	return err
}

// cleanAfterFailure removes the files and objects of a trial that ended with err. It removes
// everything if the trial could not begin. If the trial was interrupted, it removes everything
// unless --dir was given. It returns err, with the errors of the removal.
func (f *chaosFlags) cleanAfterFailure(ctx context.Context, keepDir bool, err error) error {
	_, refused := errors.AsType[*chaos.RefusedError](err)
	switch {
	case refused && keepDir: // empty the directory, so that the same command works again
		entries, removeErr := os.ReadDir(f.cfg.Dir)
		for _, e := range entries {
			removeErr = errors.Join(removeErr, os.RemoveAll(filepath.Join(f.cfg.Dir, e.Name())))
		}
		err = errors.Join(err, removeErr)
	case keepDir:
		return err
	case refused || ctx.Err() != nil:
		err = errors.Join(err, os.RemoveAll(f.cfg.Dir))
	default:
		return &cli.Error{Code: cli.CodeOf(err), Err: err, Try: "look into " + f.cfg.Dir}
	}
	clearCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if clearErr := f.clearStore(clearCtx); !refused { // the trial may have been refused because the store does not answer
		err = errors.Join(err, clearErr)
	}
	return err
}

// isURL reports whether s is an HTTP URL or "".
func isURL(s string) bool {
	u, err := url.Parse(s)
	return s == "" || err == nil && u.Host != "" && strings.HasPrefix(u.Scheme, "http")
}

// clearStore removes what a trial stored on an S3 server.
func (f *chaosFlags) clearStore(ctx context.Context) error {
	if f.cfg.Store == "" {
		return nil
	}
	store, err := f.cfg.Open(ctx, f.cfg.Store)
	if err != nil {
		return err
	}
	for o, err := range store.List(ctx, "") {
		if err == nil {
			err = store.Delete(ctx, o.Key)
		}
		if err != nil {
			return fmt.Errorf("emptying %s: %w", f.cfg.Store, err)
		}
	}
	return nil
}

// emptyDir creates the directory of a trial, or checks that it is empty. Without a name, it
// creates a temporary directory.
func emptyDir(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "tracesmith-chaos-")
		if err != nil {
			return "", fmt.Errorf("making a directory: %w", err)
		}
		return made, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("--dir: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("--dir: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("--dir %s is not empty: name a new directory", dir)
	}
	return filepath.Abs(dir)
}

// setCommands sets the functions with which the trial starts processes and reads their
// results.
func (f *chaosFlags) setCommands(s *cli.State) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	temp := filepath.Join(f.cfg.Dir, "tmp")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	f.cfg.Workers, f.cfg.Guest = 4, guest.ServeArg
	f.cfg.Child = func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Args[0] = "tracesmith-lab"
		cmd.Env = append(slices.Clone(s.Environ), "TMPDIR="+temp, "XDG_CACHE_HOME="+filepath.Join(f.cfg.Dir, "cache"))
		// An interrupt from the terminal must reach only this process, which ends the
		// others. The kernel kills them if this process dies.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		return cmd
	}
	f.cfg.Run = func(ctx context.Context, plan string, clock time.Duration, args ...string) *exec.Cmd {
		return f.cfg.Child(ctx, append([]string{"chaos", "child", "--store", plan, "--clock", clock.String(), "--"}, args...)...)
	}
	s3 := configs.S3{Endpoint: f.cfg.Endpoint, PathStyle: f.cfg.Endpoint != ""}
	f.cfg.Read = func(ctx context.Context, place string) (iter.Seq2[sinks.Trajectory, error], func() error, error) {
		data, err := wire.OpenData(ctx, place, s3)
		if err != nil {
			return nil, nil, err
		}
		return data.Trajectories(ctx), data.Close, nil
	}
	f.cfg.Open = func(ctx context.Context, place string) (sinks.Store, error) {
		if _, err := os.Stat(filepath.Join(place, "run.json")); err == nil {
			return wire.OpenStaging(ctx, place, s3)
		}
		return wire.OpenStore(ctx, place, s3)
	}
	return nil
}

func printChaos(s *cli.State, r chaos.Report) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("trial", "%d episodes, %d workers, sandbox %s, seed %d, %.0f s", r.Episodes, r.Workers, r.Sandbox, r.Seed, r.Wall)
	if r.Store != "" {
		row("store", "%s", r.Store)
	}
	for _, k := range r.Faults {
		row("  "+string(k.Kind), "%d of %d", k.Struck, k.Planned)
	}
	for _, l := range r.LeftOut {
		row("  "+string(l.Kind), "left out: %s", l.Why)
	}
	row("processes", "%d", r.Starts)
	row("episodes", "%d expected, %d staged, %d published", r.Sets.Expected, r.Sets.Staged, r.Sets.Published)
	row("calls", "%d = %d recorded + %d failed + %d lost in flight", r.Calls.Made, r.Calls.Answered, r.Calls.Failed, r.Calls.Lost)
	row("model server", "%d requests, %d answered, %d of them for turns that already had an answer", r.Server.Requests, r.Server.Answered, r.Server.Again)
	if r.Fleet > 0 {
		row("fleet", "3 NATS servers, a coordinator, %d workers; jobs delivered again: %d", r.Fleet, r.Redeliveries)
	} else {
		row("resumed in", "%.0f ms, at most %.0f (%d restarts; bound %.0f)", r.Resume.Median, r.Resume.Max, r.Resume.N, r.Resume.Within)
	}
	row("breaches", "%s", cmp.Or(map[bool]string{true: "none"}[len(r.Breaches) == 0], fmt.Sprint(len(r.Breaches))))
	for _, b := range r.Breaches {
		row("  "+b.Name, "%s", b.Detail)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	return nil
}
