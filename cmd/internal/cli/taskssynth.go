package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env/tasks/discover"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

type synthFlags struct {
	taskFlags
	task    schemas.Task // how to run the tests of directories
	cfg     synth.Config
	maxCost float64
	hashes  []string // files
	dryRun  bool
	asJSON  bool
}

func newTasksSynth(s *State) *cobra.Command {
	var f synthFlags
	c := &cobra.Command{
		Use: "synth [REPO...]", Short: "Inject bugs into repositories and keep those that tests reveal",
		Long: `Inject bugs into healthy Python repositories, check each bug with the
repository's own tests in a sandbox, and write the valid ones as a task file.
REPO is a checkout or a directory of several; the command finds out how each is
installed and tested, as tasks new does, unless --entrypoint or --setup says
how. --tasks, --dir or --source use the repositories of tasks instead, with
their bugs fixed. To resume, name the output directory again; --stop-at,
--max-cost and --workers may change.`,
		Example: "  tracesmith tasks synth ../mypackage -n 200 -o bugs\n  tracesmith tasks list --tasks bugs/tasks.jsonl",
		Args:    RangeArgs(0, -1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.cfg.Tasks > 0 && !c.Flags().Changed("candidates") {
				f.cfg.Candidates = 0
			}
			return Resumable(c.Context(), f.run(c.Context(), s, args))
		},
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	fl := c.Flags()
	fl.StringVar(&f.task.Entrypoint, "entrypoint", "", "command that runs the tests: pytest or unittest (default: found by trying; with --setup or an image: "+wire.DefaultEntrypoint+")")
	fl.StringArrayVar(&f.task.Setup, "setup", nil, "command that prepares the sandbox, run once; may be repeated")
	fl.StringVar(&f.task.License, "license", "", "SPDX id of the repository's license (default: from its license file)")
	fl.IntVarP(&f.cfg.Candidates, "candidates", "n", 100, "single mutations to try in each repository; 0: every site")
	fl.IntVar(&f.cfg.Tasks, "stop-at", 0, "stop trying mutations when there are about this many tasks, spread evenly over the repositories; the default of -n is then 0")
	fl.IntVar(&f.cfg.Commits, "commits", synth.DefaultCommits, "with kind commit: number of newest commits to revert in each repository")
	fl.IntVar(&f.cfg.Functions, "functions", synth.DefaultFunctions, "with kind model: number of functions in each repository that the model of section llm rewrites")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "stop asking the model before its calls cost more than this many USD")
	fl.Int64Var(&f.cfg.Seed, "seed", 1, "seed of every random choice")
	fl.StringSliceVar(&f.cfg.Operators, "operators", nil, "use only these operators, including their obvious changes (return None, if False, removed statements), which are otherwise left out")
	fl.IntVar(&f.cfg.Caps.Line, "per-line", synth.DefaultCaps.Line, "largest number of tasks of one source line; 0: no cap")
	fl.IntVar(&f.cfg.Caps.Function, "per-function", synth.DefaultCaps.Function, "largest number of tasks of one function; 0: no cap")
	fl.IntVar(&f.cfg.Caps.Operator, "per-operator", synth.DefaultCaps.Operator, "largest number of tasks of one operator in one function; 0: no cap")
	fl.IntVar(&f.cfg.Caps.File, "per-file", synth.DefaultCaps.File, "largest number of tasks of one file; 0: no cap")
	fl.Float64Var(&f.cfg.Caps.Share, "repo-share", synth.DefaultCaps.Share, "largest share of the tasks that one repository may have; applies if there are enough repositories (at least 2/share); 0: no cap")
	fl.StringSliceVar(&f.cfg.Difficulty, "difficulty", nil, "keep only bugs of these levels, measured without the fix: "+strings.Join(schemas.DifficultyLevels, ", "))
	fl.StringSliceVar(&f.cfg.GoldDifficulty, "gold-difficulty", nil, "keep only bugs of these levels, measured with the fix: "+strings.Join(schemas.DifficultyLevels, ", "))
	fl.StringSliceVar(&f.cfg.Kinds, "kinds", []string{synth.KindSingle}, "kinds of bugs: "+strings.Join(synth.Kinds, ", "))
	fl.IntVar(&f.cfg.Workers, "workers", runtime.NumCPU(), "sandboxes to run at once")
	fl.IntVar(&f.cfg.Runs, "runs", synth.DefaultRuns, "runs of the tests that a candidate can affect; all must agree")
	fl.IntVar(&f.cfg.ReleaseRuns, "release-runs", synth.DefaultReleaseRuns, "runs of all tests with a valid candidate, in their usual and in opposite orders; all must agree")
	fl.Float64Var(&f.cfg.MaxFailing, "max-failing", synth.DefaultMaxFailing, "largest share of the tests that a bug may break; it may never break all")
	fl.StringVar(&f.cfg.Text, "text", synth.Texts[0], "what the issue describes: "+strings.Join(synth.Texts, ", "))
	fl.StringSliceVar(&f.hashes, "benchmark-hashes", nil, "files that \"tasks hashes\" wrote: leave out copies of these repositories")
	fl.StringVarP(&f.cfg.Out, "out", "o", "synth", "output directory")
	fl.BoolVar(&f.dryRun, "dry-run", false, "find the setups of the checkouts, estimate time and yield, and stop")
	fl.BoolVar(&f.asJSON, "json", false, "print the summary as JSON")
	return c
}

func (f *synthFlags) run(ctx context.Context, s *State, args []string) error {
	if len(args) == 0 == !f.choosesSource() {
		return &Error{Code: ExitUsage, Try: "tracesmith tasks synth DIR", Err: errors.New("name healthy repositories: directories, or tasks with --tasks, --dir or --source, not both")}
	}
	if f.cfg.Workers < 1 {
		return Usage(errors.New("--workers must be at least 1"))
	}
	settings, err := f.Load(s)
	if err != nil {
		return err
	}
	if f.cfg.Benchmarks, err = readLibrary(f.hashes); err != nil {
		return err
	}
	settings.Limits.TotalCost = cmp.Or(f.maxCost, settings.Limits.TotalCost)
	if err := f.connectModel(ctx, s, settings); err != nil {
		return err
	}
	bench, err := wire.NewWorkbench(ctx, settings, s.Host())
	if err != nil {
		return Usage(err)
	}
	defer func() { _ = bench.Close() }()
	if _, err := bench.Reap(ctx, []schemas.Task{{}}); err != nil {
		return err
	}
	if f.cfg.Repos, err = f.repos(ctx, s, bench, settings.Tasks, args); err != nil || f.dryRun {
		return err
	}
	live := newLiveLine(s)
	f.cfg.Progress = synthProgress(s, live)
	sum, err := synth.Run(ctx, bench.FactoryConfig(f.cfg))
	live.erase()
	if err != nil {
		return synthError(err)
	}
	if f.asJSON {
		err = PrintJSON(s, sum)
	} else {
		err = printSynth(s, sum)
	}
	if err == nil && sum.OverBudget > 0 {
		return &Error{Code: ExitBudget, Try: "raise --max-cost and repeat the command: it continues where it stopped",
			Err: fmt.Errorf("the cost budget is used up: the model was not asked for %d bugs", sum.OverBudget)}
	}
	return err
}

// connectModel connects the model if --kinds or --text needs one.
func (f *synthFlags) connectModel(ctx context.Context, s *State, settings configs.Config) (err error) {
	f.cfg.MaxCost = settings.Limits.TotalCost
	if slices.Contains(f.cfg.Kinds, synth.KindModel) || f.cfg.Text == synth.TextReporter {
		f.cfg.Model, err = wire.BugWriter(ctx, settings, s.Getenv, s.Stderr)
	}
	return Usage(err)
}

// repos returns the healthy repositories that the command line names.
func (f *synthFlags) repos(ctx context.Context, s *State, bench *wire.Workbench, tasks configs.Tasks, args []string) ([]synth.Repo, error) {
	if len(args) > 0 {
		return f.checkouts(ctx, s, bench, args)
	}
	list, err := wire.SelectTasks(ctx, bench.Source, tasks)
	if err != nil {
		return nil, Usage(err)
	}
	if f.task.Entrypoint != "" {
		for i := range list {
			list[i].Entrypoint = f.task.Entrypoint
		}
	}
	repos, err := bench.HealthyRepos(ctx, list)
	return repos, Usage(err)
}

// checkouts reads checkouts and finds their setups, unless the command line says how their tests run. It leaves out
// checkouts without a setup, and returns an error if none has one.
func (f *synthFlags) checkouts(ctx context.Context, s *State, bench *wire.Workbench, args []string) ([]synth.Repo, error) {
	t := f.task
	t.Workdir, t.Tests.Files = schemas.DefaultWorkdir, taskfile.DefaultTestFiles()
	given := t.Entrypoint != "" || len(t.Setup) > 0 || !bench.CanDiscover()
	if given {
		t.Entrypoint = cmp.Or(t.Entrypoint, wire.DefaultEntrypoint)
	}
	list, err := wire.Repositories(args, t, s.warn)
	if err != nil {
		return nil, Usage(err)
	}
	for _, r := range list {
		for _, warning := range wire.CheckoutWarnings(ctx, r, "") {
			s.warn(warning)
		}
	}
	if given {
		return list, nil
	}
	repos, err := f.findSetups(ctx, s, bench, list)
	if err == nil && len(repos) == 0 {
		err = &Error{Code: ExitUsage, Try: "declare what is missing in pyproject.toml or requirements.txt, or use tracesmith tasks synth DIR --setup COMMAND --entrypoint COMMAND", Err: errors.New("no repository has a setup that works")}
	}
	return repos, err
}

// findSetups finds the setups of checkouts, several at once, or reads what an earlier invocation has found. It returns
// the repositories that have one.
func (f *synthFlags) findSetups(ctx context.Context, s *State, bench *wire.Workbench, list []synth.Repo) ([]synth.Repo, error) {
	seen := map[string]bool{}
	for _, r := range list {
		if seen[r.Task.InstanceID] {
			return nil, Usage(fmt.Errorf("two repositories have the name %s: rename one of the directories", r.Task.InstanceID))
		}
		seen[r.Task.InstanceID] = true
	}
	if err := synth.CheckOut(f.cfg.Out); err != nil {
		return nil, Usage(err)
	}
	setups := make([]wire.SetupRecord, len(list))
	var mu sync.Mutex
	printLine := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(s.Stderr, format+"\n", args...)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(f.cfg.Workers)
	for i, r := range list {
		g.Go(func() (err error) {
			name := r.Task.InstanceID
			record := filepath.Join(f.cfg.Out, synth.SetupsDir, name+".json")
			known := false
			setups[i], known, err = wire.ReadSetup(record, r)
			if err == nil && !known {
				printLine("setup %d of %d: %s", i+1, len(list), name)
				setups[i], err = bench.FindSetup(gctx, r, record, func(a discover.Attempt) { printLine("  %s: %s", name, attemptLine(a)) })
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []synth.Repo
	for i, r := range list {
		if setups[i].Error != "" {
			continue
		}
		r, err := setups[i].Apply(r)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	printSetups(s, setups, f.cfg.Tasks, f.cfg.Workers)
	return out, nil
}

// synthError returns a usage error if err is a mistake of the user.
func synthError(err error) error {
	_, noRepos := errors.AsType[*synth.NoUsableRepoError](err)
	_, usedDir := errors.AsType[*synth.OutputDirInUseError](err)
	_, badOperator := errors.AsType[*synth.OperatorError](err)
	_, badOut := errors.AsType[*synth.OutputDirError](err)
	if _, badConfig := errors.AsType[*synth.ConfigError](err); noRepos || usedDir || badOperator || badOut || badConfig {
		return Usage(err)
	}
	return err
}
