package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/schemas"
)

type verifyFlags struct {
	taskFlags
	runs, workers int
	seed          int64
	out           string
	asJSON        bool
}

func newTasksVerify(s *State) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use: "verify [TASK...]", Short: "Check that tasks are sound: tests, gold patch, debugger, reruns, leaks", Args: ExactArgs(0, -1),
		Long: `Check each task in sandboxes of its own: its tests fail because of the bug and pass
with the gold patch, which reverses byte for byte; no patch resolves it that is
empty, rewrites or deletes tests, or changes what configures them; the debugger
answers; the sandbox shows nothing of the fix; and reruns under other hash seeds and
in other orders, and of single tests, give the same verdicts.

The report (-o) is one JSON line per finished task, and the state: the same command
again checks only what is missing there, or was run fewer times. Each task has one
status:

` + statusHelp() + `
The exit code is 0 when all are sound (or no_gold), 6 when one is not, 3 when one
could not be checked.`,
		Example: "  tracesmith tasks verify --source builtin -o checks.jsonl\n  tracesmith tasks verify --dir tasks --runs 20 --workers 4 stockroom",
		RunE: func(c *cobra.Command, args []string) error {
			err := f.verify(c.Context(), s, args)
			if f.out == "" { // nothing was kept that could be gone on from
				return err
			}
			return Resumable(c.Context(), err)
		},
	}
	f.Add(c)
	fl := c.Flags()
	f.AddSandbox(c, "")
	fl.IntVar(&f.runs, "runs", check.DefaultRuns, "runs of the tests, with and without the gold patch")
	fl.IntVarP(&f.workers, "workers", "n", 0, "tasks at once")
	fl.Int64Var(&f.seed, "seed", 0, "seed of hash seeds and orders")
	fl.StringVarP(&f.out, "out", "o", "", "keep the reports in this file, and go on from it")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func statusHelp() string {
	var b strings.Builder
	for _, status := range check.Statuses {
		fmt.Fprintf(&b, "  %-12s %s\n", status, check.Meanings[status].Sentence)
	}
	return b.String()
}

func (f *verifyFlags) verify(ctx context.Context, s *State, names []string) (err error) {
	if f.runs < 1 || f.workers < 0 {
		return Usage(fmt.Errorf("--runs must be at least 1 and --workers not negative, got %d and %d", f.runs, f.workers))
	}
	cfg, bench, tasks, err := f.chosen(ctx, s, names)
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close() }()
	ledger, err := check.OpenLedger(f.out)
	if err != nil {
		code := ExitUsage
		if errors.Is(err, check.ErrHeld) {
			code = ExitLocked
		}
		return &Error{Code: code, Err: err, Try: "another file with -o"}
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	p := &verifyProgress{liveLine: liveLine{w: s.Stderr, live: s.TTY}}
	batch := check.Batch{
		Ledger: ledger, Workers: cmp.Or(f.workers, cfg.Run.Workers), Runs: f.runs, Begun: p.begun,
		Check: func(ctx context.Context, t schemas.Task) (check.Report, error) {
			return bench.Check(ctx, t, f.runs, f.seed)
		},
		Done: func(t schemas.Task, r check.Report, err error) {
			p.done(t, r, err)
			s.Hooks.Reach("checked")
		},
	}
	p.start(tasks, ledger, batch, f.out)
	result, stopped := batch.Run(ctx, tasks)
	p.end()
	if err := f.print(s, result, len(tasks)); err != nil {
		return err
	}
	return verifyEnd(result, stopped)
}

// verifyEnd is the exit code of what the summary told.
func verifyEnd(r check.Result, stopped error) error {
	if stopped != nil {
		return stopped
	}
	if len(r.Gaps) > 0 {
		return silent{ExitGaps}
	}
	for _, report := range r.Reports {
		if !report.Status.Usable() {
			return silent{ExitGate}
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
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTATUS\tTESTS\tRUNS\tSECONDS\tREASON")
	rows := 0
	for _, report := range r.Reports {
		if report.Status.Usable() && len(r.Reports) > maxSoundRows {
			continue
		}
		rows++
		fmt.Fprintf(w, "%s/%s\t%s\t%d+%d\t%d\t%.1f\t%s\n", report.Source, report.InstanceID, report.Status,
			len(report.FailToPass), len(report.PassToPass), report.Runs, report.Seconds, clip(remark(report), 160))
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
		fmt.Fprintf(s.Stdout, "%5d %-12s sound or not, have a text that quotes the fix itself; see quoted in the report\n", quoting, "note")
	}
	if len(r.Gaps) > 0 {
		fmt.Fprintf(s.Stdout, "%5d %-12s could not be checked; the first: %s: %s\n", len(r.Gaps), "gaps", r.Gaps[0].InstanceID, firstLine(r.Gaps[0].Reason))
	}
	if left := tasks - len(r.Reports) - len(r.Gaps); left > 0 {
		fmt.Fprintf(s.Stdout, "%5d %-12s were not checked\n", left, "left")
	}
	return nil
}

// remark is what is found, or worth a note.
func remark(r check.Report) string {
	if r.Reason == "" && len(r.Quoted) > 0 {
		return fmt.Sprintf("note: the issue itself quotes the %s %q of the fix", r.Quoted[0].Kind, r.Quoted[0].Token)
	}
	return r.Reason
}

// maxSoundRows is up to how many tasks the sound ones have rows, too.
const maxSoundRows = 40

// verifyProgress tells how far a batch is: a line per finished task, or on a
// terminal one line that is drawn anew, and lines of what is not sound.
type verifyProgress struct {
	liveLine
	total   int
	at      int
	running int
	bad     int
	since   time.Time
}

func (p *verifyProgress) start(tasks []schemas.Task, known *check.Ledger, b check.Batch, out string) {
	reused := 0
	for _, t := range tasks {
		if _, ok := known.Known(t.ID, b.Runs); ok {
			reused++
		}
	}
	p.total, p.since = len(tasks)-reused, time.Now()
	into := ""
	if out != "" {
		into = ", into " + out
	}
	fmt.Fprintf(p.w, "verify: %d selected, %d known, %d to check on %d workers%s\n", len(tasks), reused, p.total, max(b.Workers, 1), into)
}

func (p *verifyProgress) begun(schemas.Task) {
	p.running++
	p.draw()
}

func (p *verifyProgress) done(t schemas.Task, r check.Report, err error) {
	p.running--
	p.at++
	line := fmt.Sprintf("  [%d/%d] %-10s %s", p.at, p.total, r.Status, t.InstanceID)
	switch {
	case err != nil:
		line = fmt.Sprintf("  [%d/%d] %-10s %s: %s", p.at, p.total, "gap", t.InstanceID, firstLine(err.Error()))
	case remark(r) != "":
		line += "  " + clip(remark(r), 160)
	default:
		line += fmt.Sprintf("  %d runs of %d+%d tests, %.1fs", r.Runs, len(r.FailToPass), len(r.PassToPass), r.Seconds)
	}
	sound := err == nil && r.Status.Usable()
	if !sound {
		p.bad++
	}
	if !p.live || !sound {
		p.erase()
		fmt.Fprintln(p.w, line)
	}
	p.draw()
}

func (p *verifyProgress) draw() {
	p.show("  %d/%d checked, %d not sound, %d running, %s", p.at, p.total, p.bad, p.running, time.Since(p.since).Round(time.Second))
}

func (p *verifyProgress) end() { p.erase() }
