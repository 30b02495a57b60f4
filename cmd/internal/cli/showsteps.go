package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// stepFlags choose the steps of an episode.
type stepFlags struct {
	step       int
	last, full bool
	only, hide []string
}

// Add defines the flags.
func (f *stepFlags) Add(c *cobra.Command) {
	fl := c.Flags()
	fl.IntVar(&f.step, "step", -1, "show only this step")
	fl.BoolVar(&f.last, "last", false, "show only the last step")
	fl.BoolVar(&f.full, "full", false, "do not shorten long observations")
	fl.StringSliceVar(&f.only, "only", nil, "show only steps of these kinds: a tool (pdb), a source (system, user, agent),\nan action (seek_dynamic, edit, verify, ...) or error")
	fl.StringSliceVar(&f.hide, "hide", nil, "hide steps of these kinds")
}

// kindError is the kind of steps whose call failed.
const kindError = "error"

// kindsOf returns the kinds of a step for --only and --hide. A call of a tool is not of the kind agent.
func kindsOf(s schemas.StepRow) []string {
	kinds := []string{s.Source}
	if s.ToolName != nil {
		kinds[0] = *s.ToolName
	}
	if s.ActionKind != "" && s.ActionKind != kinds[0] {
		kinds = append(kinds, s.ActionKind)
	}
	if schemas.Value(s.IsError) {
		kinds = append(kinds, kindError)
	}
	return kinds
}

// choose returns the steps that the flags choose. --step counts all steps, --last those that --only and
// --hide leave.
func (f *stepFlags) choose(t sinks.Trajectory) ([]schemas.StepRow, error) {
	if f.step >= 0 {
		i := slices.IndexFunc(t.Steps, func(s schemas.StepRow) bool { return int(s.StepIndex) == f.step })
		if i < 0 {
			return nil, fmt.Errorf("episode %s has steps 0 to %d", t.Episode.EpisodeID, t.Episode.NSteps-1)
		}
		return t.Steps[i : i+1], nil
	}
	in := func(kinds []string) func(string) bool {
		return func(kind string) bool { return slices.Contains(kinds, kind) }
	}
	steps, all := []schemas.StepRow{}, []string{}
	for _, s := range t.Steps {
		kinds := kindsOf(s)
		all = append(all, kinds...)
		if (f.only == nil || slices.ContainsFunc(kinds, in(f.only))) && !slices.ContainsFunc(kinds, in(f.hide)) {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 && len(t.Steps) > 0 {
		slices.Sort(all)
		return nil, fmt.Errorf("--only and --hide leave no step of episode %s, which has the kinds %s", t.Episode.EpisodeID, strings.Join(slices.Compact(all), ", "))
	}
	if f.last && len(steps) > 0 {
		steps = steps[len(steps)-1:]
	}
	return steps, nil
}

// completeObservations replaces observations that are cut in their rows with the whole texts, if these can be read.
func completeObservations(ctx context.Context, data *wire.Data, e schemas.EpisodeRow, steps []schemas.StepRow) ([]schemas.StepRow, error) {
	steps = slices.Clone(steps)
	for i := range steps {
		text, err := data.Observation(ctx, e, &steps[i])
		switch {
		case errors.Is(err, sinks.ErrNotFound):
		case err != nil:
			return nil, err
		case steps[i].ObservationCut():
			steps[i].Observation, steps[i].ObservationTruncated = &text, new(false)
		}
	}
	return steps, nil
}

func printEpisodeHead(w *screen, e schemas.EpisodeRow) {
	fmt.Fprintf(w, "%s\n", w.paint(bold, "episode "+e.EpisodeID))
	kind := ""
	if e.BugKind != nil {
		kind = " (" + *e.BugKind + ")"
	}
	fmt.Fprintf(w, "task    %s/%s%s\n", e.TaskSource, w.safe(e.InstanceID), kind)
	agent := strings.TrimSpace(e.AgentName + " " + schemas.Value(e.AgentVersion))
	if !slices.Contains(fillers, e.Model) {
		agent += ", model " + e.Model
	}
	fmt.Fprintf(w, "agent   %s, %d turns, %d steps\n", w.safe(agent), e.NTurns, e.NSteps)
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
	verdict := fmt.Sprintf("graded by %s: %s", schemas.Value(e.VerifyMethod), e.VerifyStatus)
	if e.ClaimedResolved != nil {
		verdict = fmt.Sprintf("not verified: %s says %t", schemas.Value(e.VerifyMethod), *e.ClaimedResolved)
	}
	fmt.Fprintf(w, "outcome %s (%s), %s\n", w.paint(outcomeColor(&e), e.OutcomeText()), e.ExitReason, verdict)
	if e.ErrorMessage != nil {
		fmt.Fprintf(w, "error   %s: %s\n", schemas.Value(e.ErrorClass), w.safe(firstLine(*e.ErrorMessage)))
	}
}

func printEpisodeEnd(w *screen, e schemas.EpisodeRow) {
	if e.F2PTotal != nil && e.F2PPassed != nil && e.P2PPassed != nil && e.P2PTotal != nil {
		fmt.Fprintf(w, "\n%s\n", w.paint(bold, observe.Wrap(fmt.Sprintf("── verdict from a fresh sandbox: %s · fixed %d of %d failing tests, kept %d of %d passing ones",
			e.VerifyStatus, *e.F2PPassed, *e.F2PTotal, *e.P2PPassed, *e.P2PTotal), w.width)))
	}
	if e.VerifyReason != nil {
		fmt.Fprintf(w, "   %s\n", *e.VerifyReason)
	}
	for _, warning := range e.VerifyWarnings {
		fmt.Fprintf(w, "   warning: %s\n", warning)
	}
	if e.Patch != nil && *e.Patch != "" {
		fmt.Fprintln(w)
		printDiff(w, *e.Patch)
	}
}

// printDiff prints a patch.
func printDiff(w *screen, patch string) {
	for line := range strings.Lines(w.safe(patch)) {
		color := ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			color = bold
		case strings.HasPrefix(line, "+"):
			color = green
		case strings.HasPrefix(line, "-"):
			color = red
		case strings.HasPrefix(line, "@@"):
			color = cyan
		}
		text, hasNewline := strings.CutSuffix(line, "\n")
		fmt.Fprint(w, w.paint(color, text))
		if hasNewline {
			fmt.Fprintln(w)
		}
	}
}

// printStep prints one step: a headline, then the message, the call and the observation.
func (f *stepFlags) printStep(w *screen, s schemas.StepRow) {
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
	color := bold
	if schemas.Value(s.IsError) {
		color = red
	}
	fmt.Fprintf(w, "\n%s\n", w.paint(color, observe.Wrap(w.safe(strings.Join(head, " · ")), w.width)))
	if s.Message != "" {
		f.indent(w, "", "", s.Message)
	}
	if s.ArgumentsJSON != nil {
		f.indent(w, cyan, "→ ", schemas.Value(s.ToolName)+" "+*s.ArgumentsJSON)
	}
	if s.Observation != nil {
		f.indent(w, "", "  ", *s.Observation)
	}
	if s.ObservationCut() {
		fmt.Fprintf(w, "  … cut: %d of %d bytes; the file with the rest is missing or damaged\n", len(*s.Observation), schemas.Value(s.ObservationBytes))
	}
	if s.TriggeredJSON != nil {
		f.indent(w, "", "  also: ", *s.TriggeredJSON)
	}
}

// previewLines is how many lines of a long text are shown without --full.
const previewLines = 40

// indent prints the first lines of body, or with --full all of them, after prefix. Later
// lines are aligned with the first one.
func (f *stepFlags) indent(w *screen, color, prefix, body string) {
	lines := strings.Split(strings.TrimRight(w.safe(body), "\n"), "\n")
	shown := lines
	if !f.full && len(lines) > previewLines {
		shown = lines[:previewLines]
	}
	for i, l := range shown {
		if i > 0 && strings.TrimSpace(prefix) != "" {
			prefix = strings.Repeat(" ", len([]rune(prefix)))
		}
		fmt.Fprintf(w, "%s%s\n", prefix, w.paint(color, l))
	}
	if len(shown) < len(lines) {
		fmt.Fprintf(w, "%s… %d more lines: show them with --full\n", prefix, len(lines)-len(shown))
	}
}
