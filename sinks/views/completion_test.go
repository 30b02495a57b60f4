package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
)

// TRL trains on every token of a completion. By default, every reply that may be trained on
// is therefore one completion, and no other reply is.
func TestCompletionsAreOneReply(t *testing.T) {
	masked := withoutGold(shortEpisode(1))
	masked.Steps[5].Train, masked.Steps[5].MaskReason, masked.Steps[5].Message = false, new("tool_error"), "MASKED"
	ends := withoutGold(shortEpisode(1)) // with the masked turn
	last := &ends.Steps[len(ends.Steps)-1]
	last.Train, last.MaskReason, last.Message = false, new("repeat"), "MASKED"
	failed := goldenInput("sft-negative-pi")[1]
	failed.Steps = slices.Clone(failed.Steps)
	failed.Steps[4].Train, failed.Steps[4].MaskReason = false, new("tool_error") // the second call of a turn
	failed.Steps[3].Message = "MASKED"
	for name, in := range map[string]sinks.Trajectory{
		"clean": withoutGold(shortEpisode(1)), "gold": shortEpisode(1), "masked": masked, "ends masked": ends, "failed": failed,
		"two conversations": sinktest.Phased("run", 1).Trajectory(),
	} {
		for _, kind := range []string{"sft-trl", "sft-negative-pi", "infoseek-next-action"} {
			if (kind == "sft-negative-pi") != (name == "failed") {
				continue
			}
			rows, _ := render(t, kind, sinks.ViewOptions{Count: words}, in)
			if len(rows) == 0 && kind != "infoseek-next-action" {
				t.Errorf("%s of %s: no rows", kind, name)
			}
			for _, row := range rows {
				completion := row["completion"].([]any)
				if got := roles(completion); got != "a" {
					t.Errorf("%s of %s: a completion of the messages %q", kind, name, got)
				}
				if text := completion[0].(map[string]any)["content"].(string); strings.Contains(text, "MASKED") {
					t.Errorf("%s of %s: a masked turn is trained on", kind, name)
				}
			}
		}
	}
}

// For masks that put answers of tools into the completion, the notes name the setting that the trainer needs.
func TestAnswersInCompletionsAreNoted(t *testing.T) {
	for mask, want := range map[string]int{sinks.MaskSplitRows: 0, sinks.MaskContext: 1, sinks.MaskNone: 1} {
		_, notes := render(t, "sft-trl", sinks.ViewOptions{Mask: mask}, withoutGold(shortEpisode(1)))
		if diff := cmp.Diff(want, notes["rows_that_need_assistant_only_loss"]); diff != "" {
			t.Errorf("%s: %s", mask, diff)
		}
	}
}
