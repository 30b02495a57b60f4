package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

// synthProgress returns a function that shows the progress: as a line that it redraws on a
// terminal, or else as a line every 15 seconds.
func synthProgress(s *State) func(synth.Progress) {
	every := 15 * time.Second
	if s.TTY {
		every = 200 * time.Millisecond
	}
	var last time.Time
	return func(p synth.Progress) {
		now := s.Now()
		if now.Sub(last) < every {
			return
		}
		last = now
		line := synthLine(p)
		if s.TTY {
			line = "\r\x1b[K" + line
		} else {
			line += "\n"
		}
		fmt.Fprint(s.Stderr, line)
	}
}

func synthLine(p synth.Progress) string {
	parts := []string{fmt.Sprintf("repositories surveyed: %d of %d", p.Surveyed, p.Repos)}
	if p.SurveyDone < p.SurveyRuns {
		parts = append(parts, fmt.Sprintf("survey: %d of %d test runs", p.SurveyDone, p.SurveyRuns))
	}
	if p.Planned > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d candidates judged, %d valid", p.Judged, p.Planned, p.Outcomes[synth.Valid]))
	}
	if p.Chosen > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tasks checked, %d released", p.Checked, p.Chosen, p.Released))
	}
	if p.Remaining >= 1 {
		parts = append(parts, "about "+roughly(time.Duration(p.Remaining*float64(time.Second)))+" left for these")
	}
	return strings.Join(parts, ", ")
}

// roughly formats a duration with one unit.
func roughly(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// outcomeNames are the names of outcomes in tables.
var outcomeNames = map[synth.Outcome]string{
	synth.Refused: "not applicable", synth.Collect: "tests cannot be collected", synth.Hang: "tests time out",
	synth.Crash: "test runner does not finish", synth.Survived: "no test fails", synth.BreaksTooMany: "too many tests fail",
	synth.Litters: "tests leave files", synth.Flaky: "verdicts differ between runs", synth.NoDivergence: "runs the same with and without the bug",
	synth.Valid: "valid", synth.Duplicate: "same code as another", synth.Equivalent: "behaves like another",
	synth.Capped: "enough similar ones", synth.OtherDifficulty: "not of a requested difficulty", synth.Leaking: "fix stands elsewhere in the repository",
	synth.Unverified: "not confirmed by the verifier", synth.Released: "released as tasks",
}

// printSynth prints the summary: the results of each operator, outcomes with their reasons, and totals.
func printSynth(s *State, sum synth.Summary) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', tabwriter.TabIndent)
	fmt.Fprintln(w, "mistake\ttried\tvalid\ttasks")
	row := func(name string, t synth.Tally) {
		fmt.Fprintf(w, "%s\t%d\t%d (%.0f%%)\t%d\n", name, t.Candidates, t.Valid, 100*t.Yield(), t.Released)
	}
	for _, id := range slices.Sorted(maps.Keys(sum.Operators)) {
		row(operatorName(sum, id), *sum.Operators[id])
	}
	row("all", synth.Tally{Candidates: sum.Candidates, Valid: sum.Valid, Released: sum.Released, Outcomes: sum.Outcomes})
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	fmt.Fprintln(s.Stdout)
	for _, o := range synth.Outcomes {
		if n := sum.Outcomes[o]; n > 0 {
			fmt.Fprintf(s.Stdout, "%6d  %s\n", n, outcomeNames[o])
		}
		for _, why := range slices.Sorted(maps.Keys(sum.Reasons[o])) {
			fmt.Fprintf(s.Stdout, "%6d    %s\n", sum.Reasons[o][why], why)
		}
	}
	printSynthTotals(s, sum)
	return nil
}

// operatorName returns the name of an operator or a kind of bugs, in at most 50 characters.
func operatorName(sum synth.Summary, id string) string {
	const maxLength = 50
	name := []rune(id)
	if title := sum.OperatorNames[id]; title != "" {
		name = []rune(title)
	}
	if len(name) > maxLength {
		return string(name[:maxLength-3]) + "..."
	}
	return string(name)
}

// printSynthTotals prints the totals, and the repositories with notes or without tasks.
func printSynthTotals(s *State, sum synth.Summary) {
	fmt.Fprintf(s.Stdout, "\n%s of %s in %s\n", count(sum.Tasks, "task"), count(sum.Repos-len(sum.Refused), "repository"), sum.File)
	if sum.PerHour > 0 {
		fmt.Fprintf(s.Stdout, "%.0f s, %.0f candidates an hour, workers busy for %.0f%% of the time\n", sum.Seconds, sum.PerHour, 100*sum.Busy)
	}
	if r := sum.SuiteRuns; r.Survey > 0 {
		fmt.Fprintf(s.Stdout, "CPU time in runs of the whole test suite: %.1f for each task, %.1f to judge a candidate; in total %.1f for the surveys, %.1f for candidates, %.1f for releases, %.1f for other work\n",
			r.PerTask, r.PerCandidate, r.Survey, r.Trials, r.Releases, r.Other)
	}
	if sum.NotAlone > 0 {
		fmt.Fprintf(s.Stdout, "%d tests did not run separately from the others of their class, because the time for that was used up\n", sum.NotAlone)
	}
	if sum.Unreliable > 0 {
		fmt.Fprintf(s.Stdout, "%d tests gave different verdicts for the same code and are in no task\n", sum.Unreliable)
	}
	if sum.Tasks > 0 {
		fmt.Fprintf(s.Stdout, "difficulty: %s; with the fix known: %s\n", levels(sum.Difficulty), levels(sum.GoldDifficulty))
		unseen := int(math.Round(sum.NoFrame * float64(sum.Tasks)))
		fmt.Fprintf(s.Stdout, "in %d of %d tasks, the traceback of the failing test names only the test, not the program's code\n", unseen, sum.Tasks)
	}
	if sum.CostUSD > 0 {
		fmt.Fprintf(s.Stdout, "%.4f USD for the model's answers, at most\n", sum.CostUSD)
	}
	for _, name := range slices.Sorted(maps.Keys(sum.Notes)) {
		fmt.Fprintf(s.Stdout, "%s: %s\n", name, sum.Notes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(sum.Refused)) {
		fmt.Fprintf(s.Stdout, "left out: %s\n", sum.Refused[name])
	}
	if sum.Tasks > 0 {
		fmt.Fprintf(s.Stdout, "next: tracesmith tasks verify --tasks %s\n", sum.File)
	}
}

// levels lists how many tasks have each level of difficulty.
func levels(count map[string]int) string {
	var out []string
	for _, level := range append(slices.Clone(schemas.DifficultyLevels), "") {
		if n := count[level]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", cmp.Or(level, "unknown"), n))
		}
	}
	return strings.Join(out, ", ")
}
