package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/env/tasks/discover"
	"github.com/tracesmith/tracesmith/schemas"
)

type newFlags struct {
	ConfigFlags
	task   wire.NewTaskOptions
	asJSON bool
}

func newTasksNew(s *State) *cobra.Command {
	var f newFlags
	c := &cobra.Command{
		Use: "new REPO", Short: "Make a task of a checkout: find its setup, write task.yaml", Args: RangeArgs(1, 1),
		Long: `Find out how the checkout in REPO is installed and tested, and write a task
directory: task.yaml, in which comments say where each value comes from, and
repo/. The command reads packaging metadata, requirements, tox, nox and CI
files, and tries setups in a sandbox with network access until the tests can be
collected and some of them pass. Setups use uv, and the newest installed
interpreter that the repository allows.

With --fix, the task is the bug that a commit fixes: repo/ is the state before
it, together with the tests that it changes; gold.patch is its change to the
program; and its message becomes the instructions, without the parts that reveal
the fix.`,
		Example: "  tracesmith tasks new ../mypackage\n  tracesmith tasks new ../mypackage --fix 3f2a91c -o tasks/empty-cache\n  tracesmith tasks verify --dir tasks",
		RunE: func(c *cobra.Command, args []string) error {
			f.task.Repo = args[0]
			if !c.Flags().Changed("pin-date") {
				f.task.PinDate = f.task.Fix != ""
			}
			return f.run(c.Context(), s)
		},
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	fl := c.Flags()
	fl.StringVar(&f.task.Fix, "fix", "", "commit that fixes the bug: a hash, a tag or a branch")
	fl.StringVar(&f.task.Name, "name", "", "name of the task (default: the name of REPO)")
	fl.StringVarP(&f.task.Out, "out", "o", "", "directory of the task (default: tasks/NAME)")
	fl.BoolVar(&f.task.PinDate, "pin-date", false, "install no package released after the commit (default with --fix)")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *newFlags) run(ctx context.Context, s *State) error {
	_, bench, err := openBench(ctx, s, f.Load)
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close() }()
	if _, err := bench.Reap(ctx, []schemas.Task{{}}); err != nil {
		return err
	}
	f.task.OnAttempt = func(a discover.Attempt) { fmt.Fprintln(s.Stderr, " ", attemptLine(a)) }
	created, err := bench.NewTask(ctx, f.task)
	if err != nil {
		return Usage(err)
	}
	if f.asJSON {
		return PrintJSON(s, struct {
			Schema   string             `json:"schema"`
			Dir      string             `json:"dir"`
			Task     schemas.Task       `json:"task"`
			Tests    int                `json:"tests"`   // number of tests that pass
			Suite    float64            `json:"suite_s"` // seconds of one run of all tests
			Evidence []discover.Fact    `json:"evidence"`
			Attempts []discover.Attempt `json:"attempts"`
			Added    []string           `json:"added,omitempty"`
			Left     []string           `json:"left,omitempty"`
		}{"tracesmith.tasks.new/1", created.Dir, created.Task, created.Setup.Run.Passed(), created.Setup.Run.Wall.Seconds(),
			created.Setup.Facts, created.Setup.Attempts, created.Setup.Added, created.OmittedFiles})
	}
	printCreated(s, created)
	return nil
}

// attemptLine describes an attempt in one line.
func attemptLine(a discover.Attempt) string {
	return fmt.Sprintf("Python %s, %s: %s, %.0fs", a.Python, clip(cmp.Or(a.Command(), a.Entrypoint), 90), clip(attemptText(a), 160), a.Seconds)
}

// attemptText describes the result of an attempt.
func attemptText(a discover.Attempt) string {
	if a.Passed == 0 || !a.Usable {
		return strings.Join(strings.Fields(a.Error), " ")
	}
	out := count(a.Passed, "test") + " pass"
	if a.Passed == 1 {
		out = "1 test passes"
	}
	if a.Failed > 0 {
		out += fmt.Sprintf(", %d fail", a.Failed)
	}
	if n := len(a.Uncollected); n > 0 {
		out += fmt.Sprintf(", %d cannot be collected", n)
	}
	return out
}

func printCreated(s *State, created wire.CreatedTask) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(s.Stdout, "  %-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(s.Stdout, "%s\n", created.Dir)
	row("python", created.Setup.Python.String())
	for _, c := range created.Task.Setup {
		row("setup", c)
	}
	row("entrypoint", created.Task.Entrypoint)
	attempt := created.Setup.Attempts[len(created.Setup.Attempts)-1]
	for _, a := range created.Setup.Attempts {
		if a.Entrypoint == created.Task.Entrypoint && strings.Join(a.Setup, "\n") == strings.Join(created.Task.Setup, "\n") {
			attempt = a
		}
	}
	row("tests", attemptText(attempt))
	row("evidence", created.Setup.Why)
	for _, file := range created.Setup.Added {
		row("generated", file)
	}
	if n := len(created.Task.Tests.FailToPass); n > 0 {
		row("graded by", fmt.Sprintf("%s must be fixed, %d must keep passing", count(n, "test"), len(created.Task.Tests.PassToPass)))
	}
	for _, file := range created.OmittedFiles {
		row("left out", file+", which the fix also changes")
	}
	if created.Setup.Slow {
		fmt.Fprintln(s.Stdout, "\nThe tests did not end in time: raise sandbox.verify_timeout, or make the entrypoint run fewer of them.")
	} else if created.Task.GoldPatch == "" && attempt.Failed == 0 {
		fmt.Fprintln(s.Stdout, "\nAll tests pass: there is nothing to fix yet. Make bugs with tracesmith tasks synth, or name a fix with --fix.")
	}
	fmt.Fprintf(s.Stdout, "\nnext: tracesmith tasks verify --dir %s %s\n", shell(filepath.Dir(created.Dir)), created.Task.InstanceID)
}
