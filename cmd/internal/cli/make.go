package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/schemas"
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
checkout or a directory of several. The command runs four others and prints
their command lines:

  tasks new     find out how each repository is installed and tested
  tasks synth   inject bugs until there are about as many tasks as --tasks says
  run           demonstrate each bug with the debugger, or let an agent of your
                configuration (-c) debug it, and grade the result
  publish       write the dataset, split by repository, with a selection of the
                successful episodes

Before it injects bugs, it estimates time and yield. All work is kept in the
directory --out. To resume, repeat the command.`,
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
	fl.StringVarP(&f.dir, "out", "o", "made", "directory of the setups, the bugs and the run")
	fl.IntVar(&f.workers, "workers", runtime.NumCPU(), "sandboxes to run at once")
	fl.Int64Var(&f.seed, "seed", 1, "seed of the choice of bugs")
	fl.BoolVar(&f.dryRun, "dry-run", false, "find the setups, print the estimate, and stop")
	return c
}

// run finds the setups, and then runs the other commands one after another.
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
	repos, err := wire.Checkouts(args)
	if err != nil {
		return Usage(err)
	}
	setups, err := f.setups(ctx, s, repos)
	if err != nil {
		return err
	}
	printSetups(s, setups, f.tasks, f.workers)
	if f.dryRun {
		return nil
	}
	bugs, episodes := filepath.Join(f.dir, "bugs"), filepath.Join(f.dir, "run")
	workers := strconv.Itoa(f.workers)
	if err := f.runCommand(ctx, s, "tasks", "synth", "--dir", filepath.Join(f.dir, "setups"), "--stop-at", strconv.Itoa(f.tasks), "--seed", strconv.FormatInt(f.seed, 10), "--workers", workers, "-o", bugs); err != nil {
		return err
	}
	run := []string{"run"}
	if len(f.files) == 0 {
		run = append(run, "-p", "agent.kind=demonstrator")
	}
	if err := f.runCommand(ctx, s, append(run, "-p", "tasks.source=file", "-p", "tasks.with.path="+filepath.Join(bugs, "tasks.jsonl"), "--run-dir", episodes, "-n", workers)...); err != nil {
		return err
	}
	return f.runCommand(ctx, s, "publish", episodes, "--to", f.to)
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
	if err := root.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}

// setupRecord is the result of tasks new for one checkout. The file NAME.json in the directory
// of --out holds it.
type setupRecord struct {
	Name  string       `json:"name"`
	Task  schemas.Task `json:"task"`
	Tests int          `json:"tests"`           // number of tests that pass
	Suite float64      `json:"suite_s"`         // seconds of one run of all tests
	Error string       `json:"error,omitempty"` // why no setup was found
}

// setups finds the setup of each checkout, or reads the record of an earlier invocation. It
// returns an error if no checkout has a setup.
func (f *makeFlags) setups(ctx context.Context, s *State, repos []wire.Checkout) ([]setupRecord, error) {
	dir := filepath.Join(f.dir, "setups")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, Usage(fmt.Errorf("making the directory of the setups: %w", err))
	}
	var out []setupRecord
	for i, r := range repos {
		record := filepath.Join(f.dir, r.Name+".json")
		var result setupRecord
		text, err := os.ReadFile(record)
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(s.Stderr, "setup %d of %d: %s\n", i+1, len(repos), r.Name)
			if result, err = f.findSetup(ctx, s, r, filepath.Join(dir, r.Name)); err == nil {
				err = writeRecord(record, result)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("setup of %s (%s): %w", r.Name, record, err)
		}
		out = append(out, result)
	}
	if !slices.ContainsFunc(out, func(x setupRecord) bool { return x.Error == "" }) {
		printSetups(s, out, f.tasks, f.workers)
		return nil, &Error{Code: ExitUsage, Try: "tracesmith tasks new DIR, which lists everything that it tries", Err: errors.New("no repository has a setup that works")}
	}
	return out, nil
}

// findSetup runs tasks new for a checkout and writes its task directory to dir. If no setup is
// found, the record says why.
func (f *makeFlags) findSetup(ctx context.Context, s *State, checkout wire.Checkout, dir string) (setupRecord, error) {
	found := setupRecord{Name: checkout.Name}
	if err := os.RemoveAll(dir); err != nil { // an earlier invocation may have been killed before it wrote the record
		return found, fmt.Errorf("removing an incomplete setup: %w", err)
	}
	var out bytes.Buffer
	stdout := s.Stdout
	s.Stdout = &out
	err := f.runCommand(ctx, s, "tasks", "new", checkout.Dir, "--name", checkout.Name, "-o", dir, "--json")
	s.Stdout = stdout
	switch {
	case ctx.Err() != nil:
		return found, ctx.Err()
	case err != nil && CodeOf(err) == ExitUsage:
		first, _, _ := strings.Cut(err.Error(), "\n")
		found.Error = first
		return found, nil
	case err != nil:
		return found, err
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return found, fmt.Errorf("reading the output of tasks new: %w", err)
	}
	return found, nil
}

// writeRecord writes a record as JSON, atomically.
func writeRecord(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = renameio.WriteFile(path, append(text, '\n'), 0o644)
	}
	return err
}

// The basis of the estimate, measured on packages with fast test suites. The CPU time of the bug
// factory is given in runs of the whole test suite.
const (
	suiteRunsPerTask   = 6.0  // for each task, without the survey
	suiteRunsPerSurvey = 15.0 // for the survey of each repository
	secondsPerEpisode  = 2.0
	testsPerTask       = 2 // a repository with n tests rarely gives more than n/2 tasks
)

// printSetups lists the repositories and estimates time and yield.
func printSetups(s *State, setups []setupRecord, tasks, workers int) {
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
		fmt.Fprintf(s.Stderr, "  %-24s %s, %.1f s\n", r.Name, count(r.Tests, "test"), r.Suite)
		share := float64(tasks) / float64(usable)
		cpu += suiteRunsPerSurvey*r.Suite + share*(suiteRunsPerTask*r.Suite+secondsPerEpisode)
	}
	if usable == 0 {
		return
	}
	yield := strconv.Itoa(tasks)
	if maxTasks < tasks {
		yield = fmt.Sprintf("%d to %d", maxTasks, tasks)
	}
	estimate := time.Duration(cpu / float64(min(workers, runtime.NumCPU())) * float64(time.Second))
	fmt.Fprintf(s.Stderr, "%d of %d repositories have a setup. Estimate: %s tasks in about %s.\n", usable, len(setups), yield, roughly(estimate))
}
