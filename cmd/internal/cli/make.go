package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/pipeline/synth"
)

type makeFlags struct {
	ConfigFlags
	tasks   int
	to      string
	dir     string
	workers int
	seed    int64
	dryRun  bool
}

func newMake(s *State) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use: "make REPO...", Short: "Make a dataset from repositories with one command", Args: RangeArgs(1, -1),
		Long: `Make a dataset from checkouts of healthy Python repositories. REPO is a
checkout or a directory of several. The command runs three others and prints
their command lines:

  tasks synth   find out how each repository is installed and tested, estimate
                time and yield, and inject bugs until there are about as many
                tasks as --tasks says
  run           demonstrate each bug with the debugger, or let an agent of your
                configuration (-c) debug it, and grade the result. Bugs for
                which the agent oracle can derive no fix stay unresolved;
                -p agent.with.gold_edit=true adds the reference fix
  publish       write the dataset, split by repository, with a selection of the
                successful episodes

All work is kept in the directory --out. To resume, repeat the command. --tasks
may change until the run has begun.`,
		Example: "  tracesmith make ../mypackage -n 50 --to datasets/mine\n  tracesmith make ../checkouts -n 1000 --to s3://bucket/traces -c agent.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			return Resumable(c.Context(), f.run(c.Context(), s, args))
		},
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	fl := c.Flags()
	fl.IntVarP(&f.tasks, "tasks", "n", 100, "number of tasks to make, spread evenly over the repositories")
	fl.StringVar(&f.to, "to", "", "destination of the dataset: a directory or s3://bucket/prefix")
	fl.StringVarP(&f.dir, "out", "o", "made", "directory of the bugs and the run")
	fl.IntVar(&f.workers, "workers", runtime.NumCPU(), "sandboxes to run at once")
	fl.Int64Var(&f.seed, "seed", 1, "seed of the choice of bugs")
	fl.BoolVar(&f.dryRun, "dry-run", false, "find the setups, print the estimate, and stop")
	return c
}

// run runs the other commands one after another.
func (f *makeFlags) run(ctx context.Context, s *State, args []string) error {
	switch {
	case f.to == "" && !f.dryRun:
		return Usage(errors.New("say where to publish with --to: a directory or s3://bucket/prefix"))
	case f.tasks < 1 || f.workers < 1:
		return Usage(errors.New("--tasks and --workers must be at least 1"))
	}
	cfg, err := f.Load(s)
	if err != nil {
		return err
	}
	if cfg.Publish.To = f.to; f.to != "" {
		if err := checkDestination(ctx, cfg); err != nil {
			return err
		}
	}
	bugs, episodes := filepath.Join(f.dir, "bugs"), filepath.Join(f.dir, "run")
	if _, err := rundir.ReadInfo(episodes); err == nil { // another -n chooses other bugs
		tasks, err := synth.TasksOf(bugs)
		if err != nil {
			return err
		}
		if tasks != f.tasks {
			return Usage(fmt.Errorf("the run in %s has begun with the tasks of -n %d: use -n %d, or another directory (-o)", episodes, tasks, tasks))
		}
	}
	workers := strconv.Itoa(f.workers)
	makeBugs := append([]string{"tasks", "synth"}, args...)
	makeBugs = append(makeBugs, "--stop-at", strconv.Itoa(f.tasks), "--seed", strconv.FormatInt(f.seed, 10), "--workers", workers, "-o", bugs)
	if f.dryRun {
		return f.runCommand(ctx, s, append(makeBugs, "--dry-run")...)
	}
	if err := f.runCommand(ctx, s, makeBugs...); err != nil {
		return err
	}
	run := []string{"run"}
	if len(f.files) == 0 {
		run = append(run, "-p", "agent.kind=oracle")
	}
	if err := f.runCommand(ctx, s, append(run, "-p", "tasks.source=file", "-p", "tasks.with.path="+filepath.Join(bugs, "tasks.jsonl"), "-p", "run.gold_traces=true", "--run-dir", episodes, "-n", workers)...); err != nil {
		return err
	}
	if err := f.runCommand(ctx, s, "publish", episodes, "--to", f.to); err != nil {
		return err
	}
	if len(f.files) == 0 && !slices.ContainsFunc(f.overrides, func(set string) bool { return strings.HasPrefix(set, "agent.") }) {
		fmt.Fprintln(s.Stderr, "\nEpisodes without a repair are not kept. With -p agent.with.gold_edit=true, the oracle\nmakes the reference fix where it derives no edit. That edit is not trained on.")
	}
	return nil
}

// runCommand runs another command with the configuration flags of this one. Its error keeps the
// exit code.
func (f *makeFlags) runCommand(ctx context.Context, s *State, args ...string) error {
	for _, name := range f.files {
		args = append(args, "-c", name)
	}
	for _, set := range f.overrides {
		args = append(args, "-p", set)
	}
	if f.Sandbox != "" && args[0] != "publish" {
		args = append(args, "--sandbox", f.Sandbox)
	}
	fmt.Fprintf(s.Stderr, "\n$ %s\n", shell(append([]string{"tracesmith"}, args...)...))
	root := Tracesmith(s)
	root.SetArgs(args)
	s.partial = args[0] != "publish"
	defer func() { s.partial = false }()
	if err := root.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSuffix(strings.Join(args[:2], " "), " -p"), err)
	}
	return nil
}

// The basis of the estimate, measured on packages with fast test suites. The CPU time of the bug
// factory is given in runs of the whole test suite as the verifier makes them. These take two to three
// times as long as the factory's own runs, which are the unit of its summary.
const (
	suiteRunsPerTask   = 2.0 // for each task, without the survey
	suiteRunsPerSurvey = 5.0 // for the survey of each repository
	secondsPerEpisode  = 2.0
	testsPerTask       = 2 // a repository with n tests rarely gives more than n/2 tasks
)

// printSetups lists the repositories, and estimates time and yield unless tasks is 0.
func printSetups(s *State, setups []wire.SetupRecord, tasks, workers int) {
	usable, maxTasks, cpu := 0, 0, 0.0
	for _, r := range setups {
		if r.Error == "" {
			usable++
			maxTasks += max(r.Tests/testsPerTask, 1)
		}
	}
	for _, r := range setups {
		if r.Error != "" {
			fmt.Fprintf(s.Stderr, "  %-24s left out: %s\n", r.Name, r.Error)
			continue
		}
		fmt.Fprintf(s.Stderr, "  %-24s %s, %.1f s; Python %s, %s (%s)\n", r.Name, count(r.Tests, "test"), r.Suite, r.Version, r.Entrypoint, r.Evidence)
		if r.Failing > 0 {
			s.warn(fmt.Sprintf("%s in %s: agents see that in all of its tasks, but none asks to fix it", failNow(r.Failing), r.Name))
		}
		share := float64(tasks) / float64(usable)
		cpu += suiteRunsPerSurvey*r.Suite + share*(suiteRunsPerTask*r.Suite+secondsPerEpisode)
	}
	if usable == 0 {
		return
	}
	fmt.Fprintf(s.Stderr, "Repositories with a setup: %d of %d.", usable, len(setups))
	if tasks > 0 {
		yield := strconv.Itoa(tasks)
		if maxTasks < tasks {
			yield = fmt.Sprintf("%d to %d", maxTasks, tasks)
		}
		estimate := time.Duration(cpu / float64(min(workers, runtime.NumCPU())) * float64(time.Second))
		fmt.Fprintf(s.Stderr, " Estimate: %s tasks in about %s.", yield, roughly(estimate))
	}
	fmt.Fprintln(s.Stderr)
}
