package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
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
	asJSON  bool
}

func newTasksSynth(s *State) *cobra.Command {
	var f synthFlags
	c := &cobra.Command{
		Use: "synth [REPO...]", Short: "Inject bugs into repositories and keep those that tests reveal",
		Long: `Inject bugs into healthy Python repositories, check each bug with the
repository's own tests in a sandbox, and write the valid ones as a task file.
REPO is a directory of one repository or of several; --tasks, --dir or --source
take the repositories of tasks, with their bugs fixed. To resume, name the
output directory again.`,
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
	fl.StringVar(&f.task.Entrypoint, "entrypoint", "", "command that runs the tests: pytest or unittest (default "+wire.DefaultEntrypoint+")")
	fl.StringArrayVar(&f.task.Setup, "setup", nil, "command that prepares the sandbox, run once; may be repeated")
	fl.StringVar(&f.task.License, "license", "", "SPDX id of the repository's license (default: from its license file)")
	fl.IntVarP(&f.cfg.Candidates, "candidates", "n", 100, "single mutations to try in each repository; 0: every site")
	fl.IntVar(&f.cfg.Tasks, "stop-at", 0, "stop trying mutations when there are about this many tasks, spread evenly over the repositories; -n then is 0 by default")
	fl.IntVar(&f.cfg.Commits, "commits", synth.DefaultCommits, "newest commits in each repository that kind commit reverts")
	fl.IntVar(&f.cfg.Functions, "functions", synth.DefaultFunctions, "functions in each repository that kind model has the model of section llm write")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "stop asking the model before its calls cost more than this many USD")
	fl.Int64Var(&f.cfg.Seed, "seed", 1, "seed of every random choice")
	fl.StringSliceVar(&f.cfg.Operators, "operators", nil, "use only these operators, and also their obvious changes (return None, if False, dropped statements)")
	fl.IntVar(&f.cfg.Caps.Function, "per-function", synth.DefaultCaps.Function, "largest number of tasks of one function; 0: no cap")
	fl.IntVar(&f.cfg.Caps.Operator, "per-operator", synth.DefaultCaps.Operator, "largest number of tasks of one operator in one function; 0: no cap")
	fl.IntVar(&f.cfg.Caps.File, "per-file", synth.DefaultCaps.File, "largest number of tasks of one file; 0: no cap")
	fl.Float64Var(&f.cfg.Caps.Share, "repo-share", synth.DefaultCaps.Share, "largest share of the tasks that one repository may have, if there are at least twice as many as needed; 0: no cap")
	fl.StringSliceVar(&f.cfg.Difficulty, "difficulty", nil, "keep only bugs of these levels, measured without the fix: "+strings.Join(schemas.DifficultyLevels, ", "))
	fl.StringSliceVar(&f.cfg.GoldDifficulty, "gold-difficulty", nil, "keep only bugs of these levels, measured with the fix: "+strings.Join(schemas.DifficultyLevels, ", "))
	fl.StringSliceVar(&f.cfg.Kinds, "kinds", []string{synth.KindSingle}, "kinds of bugs: "+strings.Join(synth.Kinds, ", "))
	fl.IntVar(&f.cfg.Workers, "workers", runtime.NumCPU(), "sandboxes to run at once")
	fl.IntVar(&f.cfg.Runs, "runs", synth.DefaultRuns, "runs of the tests that a candidate can affect; all must agree")
	fl.IntVar(&f.cfg.ReleaseRuns, "release-runs", synth.DefaultReleaseRuns, "further runs of a valid candidate, the last one of all tests; all must agree")
	fl.Float64Var(&f.cfg.MaxFailing, "max-failing", synth.DefaultMaxFailing, "largest share of the tests that a bug may break; never all")
	fl.StringVar(&f.cfg.Text, "text", synth.Texts[0], "what the issue describes: "+strings.Join(synth.Texts, ", "))
	fl.StringSliceVar(&f.hashes, "benchmark-hashes", nil, "files of \"tasks hashes\": leave out copies of these repositories")
	fl.StringVarP(&f.cfg.Out, "out", "o", "synth", "output directory")
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
	if f.maxCost != 0 {
		settings.Limits.TotalCost = f.maxCost
	}
	if err := f.connectModel(ctx, s, settings); err != nil {
		return err
	}
	bench, err := wire.NewWorkbench(ctx, settings, s.Host())
	if err != nil {
		return Usage(err)
	}
	defer func() { _ = bench.Close() }()
	if f.cfg.Repos, err = f.repos(ctx, bench, settings.Tasks, args); err != nil {
		return Usage(err)
	}
	if _, err := bench.Reap(ctx, []schemas.Task{f.cfg.Repos[0].Task}); err != nil {
		return err
	}
	f.cfg.Progress = synthProgress(s)
	sum, err := synth.Run(ctx, bench.FactoryConfig(f.cfg))
	if s.TTY {
		fmt.Fprintln(s.Stderr)
	}
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
func (f *synthFlags) repos(ctx context.Context, bench *wire.Workbench, tasks configs.Tasks, args []string) ([]synth.Repo, error) {
	if len(args) > 0 {
		t := f.task
		if t.Entrypoint == "" {
			t.Entrypoint = wire.DefaultEntrypoint
		}
		t.Workdir, t.Tests.Files = schemas.DefaultWorkdir, taskfile.DefaultTestFiles()
		return wire.Repositories(args, t)
	}
	list, err := wire.SelectTasks(ctx, bench.Source, tasks)
	if err != nil {
		return nil, err
	}
	if f.task.Entrypoint != "" {
		for i := range list {
			list[i].Entrypoint = f.task.Entrypoint
		}
	}
	return bench.HealthyRepos(ctx, list)
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
