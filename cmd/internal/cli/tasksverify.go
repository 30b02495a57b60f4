package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/schemas"
)

type verifyFlags struct {
	taskFlags
	runs, workers int
	seed          int64
	alone         time.Duration
	out           string
	asJSON        bool
}

func newTasksVerify(s *State) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use: "verify [TASK...]", Short: "Check tasks: tests, gold patch, debugger, reruns, leaks", Args: RangeArgs(0, -1),
		Long: `Check each task in its own sandboxes: its tests fail because of the bug and pass
with the gold patch, which reverses byte for byte; no patch resolves the task
that is empty, rewrites or deletes tests, or changes their configuration; the
debugger works; the sandbox shows nothing of the fix; and reruns with other hash
seeds, in other orders, and of single tests give the same verdicts.

The report (-o) has one JSON line per finished task. The same command again
checks only tasks that are missing from it, or that were run fewer times. Each
task has one status:

` + statusHelp() + `
Exit code 6: a task is neither sound nor no_gold. Exit code 3: a task could not
be checked.`,
		Example: "  tracesmith tasks verify --source builtin -o checks.jsonl\n  tracesmith tasks verify --dir tasks --runs 20 --workers 4 stockroom",
		RunE: func(c *cobra.Command, args []string) error {
			err := f.verify(c.Context(), s, args)
			if f.out == "" { // there is no report to resume from
				return err
			}
			return Resumable(c.Context(), err)
		},
	}
	c.ValidArgsFunction = f.completeTasks
	f.Add(c)
	fl := c.Flags()
	f.AddSandbox(c, "")
	fl.IntVar(&f.runs, "runs", check.DefaultRuns, "runs of the tests with and without the gold patch")
	fl.DurationVar(&f.alone, "alone", check.DefaultIsolated, "run each test alone if all of them take no longer than this; 0: never")
	fl.IntVarP(&f.workers, "workers", "n", 0, "tasks to check at once")
	fl.Int64Var(&f.seed, "seed", 0, "seed of hash seeds and test orders")
	fl.StringVarP(&f.out, "out", "o", "", "keep the reports in this file, and resume from it")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// statusHelp returns the table of statuses for the help.
func statusHelp() string {
	var rows [][2]string
	for _, status := range check.Statuses {
		rows = append(rows, [2]string{string(status), check.Meanings[status].Sentence})
	}
	return table(rows)
}

func (f *verifyFlags) verify(ctx context.Context, s *State, names []string) (err error) {
	if f.runs < 1 || f.workers < 0 || f.alone < 0 {
		return Usage(fmt.Errorf("--runs must be at least 1, and --workers and --alone not negative, got %d, %d and %s", f.runs, f.workers, f.alone))
	}
	settings := check.Config{Runs: f.runs, Seed: f.seed, Isolated: f.alone}
	if f.alone == 0 {
		settings.Isolated = -1
	}
	cfg, bench, tasks, err := f.openTasks(ctx, s, names)
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close() }()
	ledger, err := check.OpenLedger(f.out)
	if err != nil {
		code := ExitUsage
		if errors.Is(err, check.ErrLocked) {
			code = ExitLocked
		}
		return &Error{Code: code, Err: err, Try: "another file with -o"}
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	p := &verifyProgress{liveLine: liveLine{w: s.Stderr, live: s.TTY}}
	batch := check.Batch{
		Ledger: ledger, Workers: cmp.Or(f.workers, cfg.Run.Workers), Runs: f.runs, OnStart: p.taskStarted,
		Check: func(ctx context.Context, t schemas.Task) (check.Report, error) {
			return bench.Check(ctx, t, settings)
		},
		OnDone: func(t schemas.Task, r check.Report, err error) {
			p.done(t, r, err)
			s.Hooks.Reach("checked")
		},
	}
	p.start(tasks, ledger, batch, f.out)
	result, stopped := batch.Run(ctx, tasks)
	p.erase()
	if err := f.print(s, result, len(tasks)); err != nil {
		return err
	}
	return verifyError(result, stopped)
}

// verifyError returns the error of the command, whose result the summary shows.
func verifyError(r check.Result, stopped error) error {
	if stopped != nil {
		return stopped
	}
	if len(r.Gaps) > 0 {
		return silentExit{ExitIncomplete}
	}
	for _, report := range r.Reports {
		if !report.Status.Usable() {
			return silentExit{ExitCheckFailed}
		}
	}
	return nil
}

// verifyOutput is what tasks verify --json prints.
type verifyOutput struct {
	Schema   string               `json:"schema"`
	Tasks    int                  `json:"tasks"`
	Statuses map[check.Status]int `json:"statuses"`
	check.Result
}

func (f *verifyFlags) print(s *State, r check.Result, tasks int) error {
	counts, quoting := map[check.Status]int{}, 0
	for _, report := range r.Reports {
		counts[report.Status]++
		if len(report.Quoted) > 0 {
			quoting++
		}
	}
	if f.asJSON {
		return PrintJSON(s, verifyOutput{"tracesmith.tasks.verify/1", tasks, counts, r})
	}
	w := newTable(s.Stdout, "TASK\tSTATUS\tTESTS\tRUNS\tSECONDS\tREASON")
	rows := 0
	for _, report := range r.Reports {
		if report.Status.Usable() && len(r.Reports) > maxSoundRows {
			continue
		}
		rows++
		fmt.Fprintf(w, "%s/%s\t%s\t%d+%d\t%d\t%.1f\t%s\n", report.Source, report.InstanceID, report.Status,
			len(report.FailToPass), len(report.PassToPass), report.Runs, report.Seconds, clip(reasonOrNote(report), 160))
	}
	if rows > 0 {
		if err := w.Flush(); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		fmt.Fprintln(s.Stdout)
	}
	for _, status := range check.Statuses {
		if n := counts[status]; n > 0 {
			fmt.Fprintf(s.Stdout, "%5d %-12s %s\n", n, status, check.Meanings[status].Sentence)
			if remedy := check.Meanings[status].Remedy; remedy != "" {
				fmt.Fprintf(s.Stdout, "%18s try: %s\n", "", remedy)
			}
		}
	}
	if quoting > 0 {
		fmt.Fprintf(s.Stdout, "%5d %-12s have an issue that quotes the fix, whatever their status; see quoted in the report\n", quoting, "note")
	}
	if len(r.Gaps) > 0 {
		fmt.Fprintf(s.Stdout, "%5d %-12s could not be checked; the first: %s: %s\n", len(r.Gaps), "gaps", r.Gaps[0].InstanceID, firstLine(r.Gaps[0].Reason))
	}
	if remaining := tasks - len(r.Reports) - len(r.Gaps); remaining > 0 {
		fmt.Fprintf(s.Stdout, "%5d %-12s were not checked\n", remaining, "left")
	}
	return nil
}

// reasonOrNote returns the reason of the status or, if there is none, a note that the issue
// quotes the fix. It returns "" if the report has neither.
func reasonOrNote(r check.Report) string {
	if r.Reason == "" && len(r.Quoted) > 0 {
		return fmt.Sprintf("note: the issue itself quotes the %s %q of the fix", r.Quoted[0].Kind, r.Quoted[0].Token)
	}
	return r.Reason
}

// maxSoundRows is the largest number of tasks for which the summary has a row for every task.
// Beyond it, sound tasks have no row.
const maxSoundRows = 40

// verifyProgress prints a line for each finished task. On a terminal it prints only tasks that
// are not sound, and redraws a line of progress.
type verifyProgress struct {
	liveLine
	total    int // tasks to check
	finished int
	running  int
	unsound  int // finished tasks that are not sound
	started  time.Time
}

func (p *verifyProgress) start(tasks []schemas.Task, ledger *check.Ledger, b check.Batch, out string) {
	reused := 0
	for _, t := range tasks {
		if _, ok := ledger.Known(t.ID, b.Runs); ok {
			reused++
		}
	}
	p.total, p.started = len(tasks)-reused, time.Now()
	into := ""
	if out != "" {
		into = ", into " + out
	}
	fmt.Fprintf(p.w, "verify: %d selected, %d known, %d to check on %d workers%s\n", len(tasks), reused, p.total, max(b.Workers, 1), into)
}

func (p *verifyProgress) taskStarted(schemas.Task) {
	p.running++
	p.draw()
}

func (p *verifyProgress) done(t schemas.Task, r check.Report, err error) {
	p.running--
	p.finished++
	line := fmt.Sprintf("  [%d/%d] %-10s %s", p.finished, p.total, r.Status, t.InstanceID)
	switch {
	case err != nil:
		line = fmt.Sprintf("  [%d/%d] %-10s %s: %s", p.finished, p.total, "gap", t.InstanceID, firstLine(err.Error()))
	case reasonOrNote(r) != "":
		line += "  " + clip(reasonOrNote(r), 160)
	default:
		line += fmt.Sprintf("  %d runs of %d+%d tests, %.1fs", r.Runs, len(r.FailToPass), len(r.PassToPass), r.Seconds)
	}
	sound := err == nil && r.Status.Usable()
	if !sound {
		p.unsound++
	}
	if !p.live || !sound {
		p.erase()
		fmt.Fprintln(p.w, line)
	}
	p.draw()
}

func (p *verifyProgress) draw() {
	p.show("  %d/%d checked, %d not sound, %d running, %s", p.finished, p.total, p.unsound, p.running, time.Since(p.started).Round(time.Second))
}
