package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// taskFlags select a task source without a configuration file.
type taskFlags struct {
	ConfigFlags
	source, dir, file  string
	levels, goldLevels []string // levels of difficulty, without and with the fix
}

// Add defines the flags that choose the source.
func (f *taskFlags) Add(c *cobra.Command) {
	f.ConfigFlags.Add(c)
	c.Flags().StringVar(&f.source, "source", "", "task source: "+strings.Join(env.Sources.Kinds(), ", "))
	c.Flags().StringVar(&f.dir, "dir", "", "directory of tasks (task.yaml + repo/); short for --source dir -p tasks.with.path=DIR")
	c.Flags().StringVar(&f.file, "tasks", "", "task file (.jsonl or .parquet); short for --source file -p tasks.with.path=FILE")
}

// AddLevels defines the flags that select tasks by their difficulty.
func (f *taskFlags) AddLevels(c *cobra.Command) {
	levels := strings.Join(schemas.DifficultyLevels, ", ")
	c.Flags().StringSliceVar(&f.levels, "difficulty", nil, "only tasks of these levels, measured without the fix ("+levels+"); short for -p tasks.difficulty")
	c.Flags().StringSliceVar(&f.goldLevels, "gold-difficulty", nil, "only tasks of these levels, measured with the fix; short for -p tasks.gold_difficulty")
}

func (f *taskFlags) choosesSource() bool { return f.dir != "" || f.source != "" || f.file != "" }

// Load returns the configuration with the source that the flags choose.
func (f *taskFlags) Load(s *State) (configs.Config, error) {
	cfg, err := f.ConfigFlags.Load(s)
	switch {
	case err != nil:
		return cfg, err
	case f.file != "" && (f.dir != "" || f.source != "" && f.source != "file"):
		return cfg, Usage(errors.New("--tasks names the tasks already: leave out --dir and --source"))
	case f.dir != "":
		cfg.Tasks.Source, cfg.Tasks.With = "dir", configs.Block{"path": f.dir}
	case f.file != "":
		cfg.Tasks.Source, cfg.Tasks.With = "file", configs.Block{"path": f.file}
	case f.source != "":
		cfg.Tasks.Source = f.source
	}
	if len(f.levels) > 0 {
		cfg.Tasks.Difficulty = f.levels
	}
	if len(f.goldLevels) > 0 {
		cfg.Tasks.GoldDifficulty = f.goldLevels
	}
	return cfg, nil
}

// tasks returns the selected tasks of the source.
func (f *taskFlags) tasks(c *cobra.Command, s *State) ([]schemas.Task, error) {
	cfg, err := f.Load(s)
	if err != nil {
		return nil, err
	}
	src, err := wire.Source(cfg.Tasks)
	if err != nil {
		return nil, Usage(err)
	}
	tasks, err := wire.SelectTasks(c.Context(), src, cfg.Tasks)
	if err != nil {
		return nil, Usage(err)
	}
	return tasks, nil
}

// openBench loads a configuration and opens its workbench. The caller must close the workbench, unless there is an
// error.
func openBench(ctx context.Context, s *State, load func(*State) (configs.Config, error)) (configs.Config, *wire.Workbench, error) {
	cfg, err := load(s)
	if err != nil {
		return cfg, nil, err
	}
	bench, err := wire.NewWorkbench(ctx, cfg, s.Host())
	return cfg, bench, Usage(err)
}

// openTasks opens a workbench and returns it with the named tasks, or with all tasks of the
// source if names is empty. The caller must close the workbench, unless there is an error.
func (f *taskFlags) openTasks(ctx context.Context, s *State, names []string) (cfg configs.Config, bench *wire.Workbench, tasks []schemas.Task, err error) {
	if cfg, bench, err = openBench(ctx, s, f.Load); err != nil {
		return cfg, nil, nil, err
	}
	if tasks, err = namedTasks(ctx, bench, cfg.Tasks, names); err != nil {
		return cfg, nil, nil, Usage(errors.Join(err, bench.Close()))
	}
	return cfg, bench, tasks, nil
}

func namedTasks(ctx context.Context, bench *wire.Workbench, from configs.Tasks, names []string) ([]schemas.Task, error) {
	tasks, err := wire.SelectTasks(ctx, bench.Source, from)
	if err != nil || len(names) == 0 {
		return tasks, err
	}
	var out []schemas.Task
	for _, name := range names {
		t, err := wire.FindTask(tasks, name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// liveLine is a line of progress that is redrawn in place. It prints nothing unless live is
// set.
type liveLine struct {
	w    io.Writer
	live bool // w is a terminal
}

func (l liveLine) show(format string, args ...any) {
	if l.live {
		fmt.Fprintf(l.w, "\r\x1b[K"+format, args...)
	}
}

func (l liveLine) erase() { l.show("") }

func newTasks(s *State) *cobra.Command {
	return Group("tasks", "Browse, check, make and split tasks", newTasksList(s), newTasksShow(s), newTasksVerify(s), newTasksPrepull(s), newTasksNew(s), newTasksSynth(s), newTasksSplit(s), newTasksHashes(s))
}

func newTasksList(s *State) *cobra.Command {
	var f taskFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the tasks of a source", Args: RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			tasks, err := f.tasks(c, s)
			if err != nil {
				return err
			}
			if asJSON {
				for i := range tasks {
					tasks[i] = tasks[i].Public() // tasks show --gold shows the privileged data
				}
				return PrintJSON(s, map[string]any{"schema": "tracesmith.tasks/1", "tasks": tasks})
			}
			w := newTable(s.Stdout, "TASK\tKIND\tDIFFICULTY\tTESTS\tGOLD\tSUMMARY")
			for _, t := range tasks {
				fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\n", t.Source, t.InstanceID, t.BugKind, levelOf(t),
					testCounts(t.Tests), yesNo(t.GoldPatch != ""), clip(summaryLine(t.Instructions), 70))
			}
			return w.Flush()
		},
	}
	f.Add(c)
	f.AddLevels(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// testCounts returns how many tests must be fixed and how many must keep passing; "-" if the task lists none.
func testCounts(t schemas.TestSpec) string {
	if len(t.FailToPass)+len(t.PassToPass) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d+%d", len(t.FailToPass), len(t.PassToPass))
}

// gradedBy says how a task is graded.
func gradedBy(t schemas.TestSpec) string {
	switch {
	case t.NeedsBaseline():
		return t.Method + ": a run of the tests finds out which ones must be fixed"
	case t.Method == schemas.VerifyExitCode:
		return t.Method + ": the entrypoint must exit with 0"
	}
	return fmt.Sprintf("%s: %s must be fixed, %d must keep passing", t.Method, count(len(t.FailToPass), "test"), len(t.PassToPass))
}

// levelOf returns a task's difficulty, measured without the fix; "-" if it was not measured.
func levelOf(t schemas.Task) string {
	if t.Difficulty == nil || t.Difficulty.Level == "" {
		return "-"
	}
	return t.Difficulty.Level
}

// summaryLine returns the first line of a text that summarizes it: a line that is not empty
// and does not end with a colon, without the marks of a heading.
func summaryLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		if line != "" && !strings.HasSuffix(line, ":") {
			return line
		}
	}
	return firstLine(text)
}

func newTasksShow(s *State) *cobra.Command {
	var f taskFlags
	var asJSON, gold bool
	var out string
	c := &cobra.Command{
		Use: "show TASK", Short: "Show one task: instructions, tests, how it is graded", Args: RangeArgs(1, 1),
		Example: "  tracesmith tasks show --source builtin waymark\n  tracesmith tasks show --dir tasks mytask --gold -o copy/task.jsonl",
		RunE: func(c *cobra.Command, args []string) error {
			if out != "" && (asJSON || !gold) {
				return Usage(errors.New("--out writes a task file, which contains privileged data: give --gold, and leave out --json"))
			}
			tasks, err := f.tasks(c, s)
			if err != nil {
				return err
			}
			t, err := wire.FindTask(tasks, args[0])
			if err != nil {
				return Usage(err)
			}
			if out != "" {
				return f.write(c.Context(), s, t, out)
			}
			if !gold {
				t = t.Public()
			}
			if asJSON {
				return PrintJSON(s, struct {
					Schema string `json:"schema"`
					schemas.Task
				}{taskfile.Schema, t})
			}
			printTask(s, t)
			return nil
		},
	}
	c.ValidArgsFunction = f.completeTasks
	f.Add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&gold, "gold", false, "also show privileged data: the gold patch, hidden tests, the origin of the bug")
	c.Flags().StringVarP(&out, "out", "o", "", "write the task as a task file (.jsonl), and its repository beside it")
	return c
}

// write writes a task and its repository as a task file.
func (f *taskFlags) write(ctx context.Context, s *State, t schemas.Task, name string) error {
	if _, err := os.Lstat(name); err == nil {
		return Usage(fmt.Errorf("%s exists and is not overwritten", name))
	}
	cfg, err := f.Load(s)
	if err != nil {
		return err
	}
	src, err := wire.Source(cfg.Tasks)
	if err != nil {
		return Usage(err)
	}
	envTree, err := src.Tree(ctx, t.InstanceID)
	if err != nil {
		return fmt.Errorf("reading the repository of %s: %w", t.InstanceID, err)
	}
	tree, ok := envTree.(*workspace.Tree)
	if !ok {
		return Usage(fmt.Errorf("the source %s has no repositories that can be copied: its tasks run in images", src.Name()))
	}
	w, err := taskfile.Create(name)
	if err != nil {
		return Usage(err)
	}
	defer w.Abort()
	ref, err := w.AddTree(tree)
	if err != nil {
		return err
	}
	t.BugPatch = "" // the repository has the bug
	if err := w.Add(t, ref); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "%s\n", name)
	return nil
}

func printTask(s *State, t schemas.Task) {
	fmt.Fprintf(s.Stdout, "%s/%s  %s\n", t.Source, t.InstanceID, t.ID)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(s.Stdout, "  %-12s %s\n", name, value)
		}
	}
	row("repository", t.Repo)
	row("kind", t.BugKind)
	row("license", t.License)
	row("entrypoint", t.Entrypoint)
	row("debugger", t.DebugEntrypoint)
	row("setup", strings.Join(t.Setup, " && "))
	row("hide", strings.Join(t.Hide, " "))
	row("image", t.Image)
	row("graded by", gradedBy(t.Tests))
	fmt.Fprintf(s.Stdout, "\n%s\n", strings.TrimRight(t.Instructions, "\n"))
	for _, id := range t.Tests.FailToPass {
		fmt.Fprintf(s.Stdout, "\n  must be fixed  %s", id)
	}
	fmt.Fprintln(s.Stdout)
	if t.GoldPatch != "" {
		fmt.Fprintf(s.Stdout, "\n%s", t.GoldPatch)
	}
}
