package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

type showFlags struct {
	dataFlags
	step   int
	last   bool
	full   bool
	bytes  bool
	asJSON bool
}

func newShow(s *State) *cobra.Command {
	f := showFlags{step: -1}
	c := &cobra.Command{
		Use: "show DATASET-or-RUN [EPISODE]", Short: "Show one trajectory step by step; without EPISODE, list all",
		Long: "Print one episode: what the agent said, called and saw, and where the debugger\n" +
			"stood. EPISODE is an episode id, a prefix of one, or a task's instance id.",
		Example: "  tracesmith show out/quickstart/dataset\n  tracesmith show out/quickstart/dataset stockroom --step 7",
		Args:    RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := f.open(c, s, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = data.Close() }()
			var found []sinks.Trajectory
			for t, err := range data.Trajectories(c.Context()) {
				switch {
				case err != nil:
					return Usage(err)
				case len(args) == 1:
					t.Steps = nil
					found = append(found, t)
				case matches(args[1], t.Episode.EpisodeID, t.Episode.InstanceID):
					found = append(found, t)
				}
			}
			switch {
			case len(args) == 1:
				return f.list(c.Context(), s, data, found)
			case len(found) == 0:
				if err := f.deadLetterError(c.Context(), data, args[1]); err != nil {
					return err
				}
				if found, err := f.showUnfinished(c.Context(), s, data, args[1]); found || err != nil {
					return err
				}
				return &Error{Code: ExitUsage, Try: shell("tracesmith", "show", args[0]), Err: fmt.Errorf("no episode %q in %s", args[1], args[0])}
			case len(found) > 1:
				fmt.Fprintf(s.Stderr, "%d episodes match %q; showing the first. Name one by its id:\n", len(found), args[1])
				for _, t := range found {
					fmt.Fprintf(s.Stderr, "  %s  attempt %d  %s\n", t.Episode.EpisodeID, t.Episode.Attempt, schemas.Value(t.Episode.Outcome))
				}
			}
			return f.showEpisode(s, data, found[0])
		},
	}
	f.Add(c)
	c.Flags().IntVar(&f.step, "step", -1, "show only this step")
	c.Flags().BoolVar(&f.last, "last", false, "show only the last step")
	c.Flags().BoolVar(&f.full, "full", false, "do not shorten long observations")
	c.Flags().BoolVar(&f.bytes, "wire", false, "show the bytes of the model calls, failed ones included; only of a run")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the rows as JSON")
	return c
}

// matches reports whether name is an episode's id, a prefix of it with at least 4 characters,
// or the instance id of its task.
func matches(name, id, instance string) bool {
	return name == id || name == instance || len(name) >= 4 && strings.HasPrefix(id, name)
}

// list lists all episodes, then the jobs without an episode and the unfinished episodes.
func (f *showFlags) list(ctx context.Context, s *State, data *wire.Data, found []sinks.Trajectory) error {
	dead, err := data.DeadLetters(ctx)
	if err != nil {
		return Usage(err)
	}
	if f.asJSON {
		rows, deadRows := []schemas.EpisodeRow{}, []schemas.DeadLetterRow{}
		for _, t := range found {
			rows = append(rows, t.Episode)
		}
		for _, d := range dead {
			deadRows = append(deadRows, d.DeadLetterRow)
		}
		return PrintJSON(s, map[string]any{"schema": "tracesmith.episodes/1", "episodes": rows, "dead_letters": deadRows})
	}
	w := newTable(s.Stdout, "EPISODE\tTASK\tATTEMPT\tAGENT\tOUTCOME\tTURNS\tSECONDS")
	for _, t := range found {
		e := t.Episode
		seconds := ""
		if e.WallMS != nil {
			seconds = fmt.Sprintf("%.1f", float64(*e.WallMS)/1000)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t%s\n", e.EpisodeID[:12], e.InstanceID, e.Attempt, e.AgentName, e.OutcomeText(), e.NTurns, seconds)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	printDead(s.Stdout, data, dead)
	unfinished, err := data.Unfinished(ctx)
	for _, u := range slices.DeleteFunc(unfinished, func(u wire.Unfinished) bool { return u.Dead }) {
		fmt.Fprintf(s.Stderr, "%s  %s  not finished: repeat the run command to continue it\n", u.ID[:min(12, len(u.ID))], u.Instance)
	}
	return err
}

// printDead counts the jobs that ended without an episode, and lists the first ones.
func printDead(w io.Writer, data *wire.Data, dead []wire.DeadLetter) {
	tally := publish.NewTally()
	for _, d := range dead {
		tally.AddDead([]schemas.DeadLetterRow{d.DeadLetterRow})
	}
	if len(dead) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s without an episode: %s\n", count(len(dead), "job"), tally.Stats().NoEpisode())
	for _, d := range dead[:min(len(dead), 20)] {
		fmt.Fprintf(w, "  %s  %s  %s\n", d.UnitKey[:min(12, len(d.UnitKey))], cmp.Or(d.Instance, "task "+clip(schemas.Value(d.InputRef), 12)), deadReason(d))
	}
	fmt.Fprintf(w, "  all of them: %s\n", data.DeadLettersPath())
}

// deadReason says on one line why a job has no episode.
func deadReason(d wire.DeadLetter) string {
	return fmt.Sprintf("%s after %s: %s", schemas.Value(d.ErrorClass), count(int(d.Attempts), "attempt"), firstLine(schemas.Value(d.ErrorMessage)))
}

// showEpisode shows the steps of an episode that the flags choose.
func (f *showFlags) showEpisode(s *State, data *wire.Data, t sinks.Trajectory) error {
	steps := t.Steps
	switch {
	case f.last && len(steps) > 0:
		steps = steps[len(steps)-1:]
	case f.step >= len(t.Steps):
		return Usage(fmt.Errorf("episode %s has steps 0 to %d", t.Episode.EpisodeID, len(t.Steps)-1))
	case f.step >= 0:
		steps = steps[f.step : f.step+1]
	}
	if f.bytes {
		return f.showCalls(s, data, t, steps)
	}
	if f.asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.trajectory/1", "episode": t.Episode, "steps": steps})
	}
	if len(steps) == len(t.Steps) {
		printEpisodeHead(s.Stdout, t.Episode)
	}
	for _, step := range steps {
		f.printStep(s.Stdout, step)
	}
	if len(steps) == len(t.Steps) {
		printEpisodeEnd(s.Stdout, t.Episode)
	}
	return nil
}

func printEpisodeHead(w io.Writer, e schemas.EpisodeRow) {
	fmt.Fprintf(w, "episode %s\n", e.EpisodeID)
	fmt.Fprintf(w, "task    %s/%s (%s)\n", e.TaskSource, e.InstanceID, schemas.Value(e.BugKind))
	fmt.Fprintf(w, "agent   %s %s, %d turns, %d steps\n", e.AgentName, schemas.Value(e.AgentVersion), e.NTurns, e.NSteps)
	var phases []string
	for i, phase := range e.Phases[:min(len(e.Phases), len(e.PhaseModels))] {
		phases = append(phases, phase+" "+e.PhaseModels[i])
	}
	if len(phases) > 0 {
		fmt.Fprintf(w, "models  %s\n", strings.Join(phases, ", "))
	}
	if e.NDiverged != nil && *e.NDiverged > 0 && e.FirstDivergedStep != nil {
		fmt.Fprintf(w, "again   %d answers differ from the recorded ones; the first is that of step %d\n", *e.NDiverged, *e.FirstDivergedStep)
	}
	fmt.Fprintf(w, "outcome %s (%s), graded by %s: %s\n", e.OutcomeText(), e.ExitReason, schemas.Value(e.VerifyMethod), e.VerifyStatus)
}

func printEpisodeEnd(w io.Writer, e schemas.EpisodeRow) {
	if e.F2PTotal != nil && e.F2PPassed != nil && e.P2PPassed != nil && e.P2PTotal != nil {
		fmt.Fprintf(w, "\n── verdict from a fresh sandbox: %s · fixed %d of %d failing tests, kept %d of %d passing ones\n",
			e.VerifyStatus, *e.F2PPassed, *e.F2PTotal, *e.P2PPassed, *e.P2PTotal)
	}
	if e.VerifyReason != nil {
		fmt.Fprintf(w, "   %s\n", *e.VerifyReason)
	}
	for _, warning := range e.VerifyWarnings {
		fmt.Fprintf(w, "   warning: %s\n", warning)
	}
	if e.Patch != nil && *e.Patch != "" {
		fmt.Fprintf(w, "\n%s", *e.Patch)
	}
}

// printStep prints one step: a headline, then the message, the call and the observation.
func (f *showFlags) printStep(w io.Writer, s schemas.StepRow) {
	head := []string{fmt.Sprintf("── %d", s.StepIndex), s.Source}
	if s.ToolName != nil {
		head[1] = *s.ToolName
	}
	if s.Phase != nil {
		head = append(head, *s.Phase)
	}
	if s.EnvMS != nil && s.ToolName != nil {
		head = append(head, fmt.Sprintf("%d ms", *s.EnvMS))
	}
	if s.FrameFile != nil && s.FrameLine != nil {
		head = append(head, fmt.Sprintf("at %s:%d in %s", *s.FrameFile, *s.FrameLine, schemas.Value(s.FrameFunction)))
	}
	if s.IsError != nil && *s.IsError {
		head = append(head, "error: "+schemas.Value(s.ErrorClass))
	}
	if s.Source == "agent" && !s.Train {
		head = append(head, "not trained on: "+schemas.Value(s.MaskReason))
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(head, " · "))
	if s.Message != "" {
		f.indent(w, "", s.Message)
	}
	if s.ArgumentsJSON != nil {
		f.indent(w, "→ ", schemas.Value(s.ToolName)+" "+*s.ArgumentsJSON)
	}
	if s.Observation != nil {
		f.indent(w, "  ", *s.Observation)
	}
	if s.TriggeredJSON != nil {
		f.indent(w, "  also: ", *s.TriggeredJSON)
	}
}

// previewLines is how many lines of a long text are shown without --full.
const previewLines = 40

// indent prints the first lines of body, or with --full all of them, after prefix. Later
// lines are aligned with the first one.
func (f *showFlags) indent(w io.Writer, prefix, body string) {
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	shown := lines
	if !f.full && len(lines) > previewLines {
		shown = lines[:previewLines]
	}
	for i, l := range shown {
		if i > 0 && strings.TrimSpace(prefix) != "" {
			prefix = strings.Repeat(" ", len([]rune(prefix)))
		}
		fmt.Fprintf(w, "%s%s\n", prefix, l)
	}
	if len(shown) < len(lines) {
		fmt.Fprintf(w, "%s… %d more lines: show them with --full\n", prefix, len(lines)-len(shown))
	}
}
