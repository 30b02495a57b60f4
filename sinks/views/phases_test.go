package views_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
)

// The tools may change within a conversation. A row of several turns lists all tools that
// its turns were shown; a row of one turn lists only those of the turn.
func TestRowsNameEveryToolOfTheirTurns(t *testing.T) {
	grown := sinktest.Phased("run", 1).Trajectory()
	first, second := &grown.Steps[2], &grown.Steps[3]
	first.ToolSetSHA256, second.ToolSetSHA256 = second.ToolSetSHA256, first.ToolSetSHA256
	for mask, want := range map[string]string{sinks.MaskContext: "view handover", sinks.MaskSplitRows: "handover; view handover"} {
		rows, _ := render(t, "sft-trl", sinks.ViewOptions{Phase: "seek", Mask: mask}, grown)
		var got []string
		for _, r := range rows {
			var names []string
			for _, tool := range r["tools"].([]any) {
				names = append(names, tool.(map[string]any)["function"].(map[string]any)["name"].(string))
			}
			got = append(got, strings.Join(names, " "))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: tools %v, want %s", mask, got, want)
		}
	}
}

// Each phase of an episode is a separate conversation with its own opening messages and
// tools, and the options can select one phase.
func TestPhasesAreSeparateConversations(t *testing.T) {
	masked := sinktest.Phased("run", 1).Trajectory() // the handover is masked
	masked.Steps[3].Train, masked.Steps[3].MaskReason = false, new("tool_error")
	maskedFirst := sinktest.Phased("run", 1).Trajectory() // the turn before the handover is masked
	maskedFirst.Steps[2].Train, maskedFirst.Steps[2].MaskReason = false, new("tool_error")
	for name, c := range map[string]struct {
		in   sinks.Trajectory
		opts sinks.ViewOptions
		want []string // phase, roles, first tool
		lost sinks.Notes
	}{
		"each":  {sinktest.Phased("run", 1).Trajectory(), sinks.ViewOptions{Mask: sinks.MaskContext}, []string{"seek su|ata view", "solve su|ata edit"}, sinks.Notes{}},
		"seek":  {sinktest.Phased("run", 1).Trajectory(), sinks.ViewOptions{Phase: "seek", Mask: sinks.MaskContext}, []string{"seek su|ata view"}, sinks.Notes{}},
		"solve": {sinktest.Phased("run", 1).Trajectory(), sinks.ViewOptions{Phase: "solve", Mask: sinks.MaskContext}, []string{"solve su|ata edit"}, sinks.Notes{}},
		"none":  {sinktest.Phased("run", 1).Trajectory(), sinks.ViewOptions{Phase: "dream"}, nil, sinks.Notes{}},
		"plain": {trajectory(), sinks.ViewOptions{Phase: "seek"}, nil, sinks.Notes{}},
		"split": {sinktest.Phased("run", 1).Trajectory(), sinks.ViewOptions{Mask: sinks.MaskSplitRows},
			[]string{"seek su|a view", "seek suat|a handover", "solve su|a edit", "solve suat|a edit"}, sinks.Notes{}},
		"context": {maskedFirst, sinks.ViewOptions{Phase: "seek", Mask: sinks.MaskContext}, []string{"seek suat|a handover"}, sinks.Notes{"turns_masked_tool_error": 1}},
		"cut":     {masked, sinks.ViewOptions{Mask: sinks.MaskCut}, []string{"seek su|a view", "solve su|ata edit"}, sinks.Notes{"turns_cut_tool_error": 1}},
		// drop-episode drops a conversation with a masked turn, not the other ones of the episode.
		"drop": {masked, sinks.ViewOptions{Mask: sinks.MaskDropEpisode}, []string{"solve su|ata edit"}, sinks.Notes{"rows_dropped_masked": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, notes := render(t, "sft-trl", c.opts, c.in)
			var got []string
			for _, r := range rows {
				list := roles(r["prompt"]) + "|" + roles(r["completion"])
				tool := r["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)["name"]
				got = append(got, fmt.Sprint(r["phase"], " ", list, " ", tool))
				raw, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				for _, other := range map[string][]string{"seek": {"You solve", "I change it"}, "solve": {"You seek", "I look", "seen by seek"}}[r["phase"].(string)] {
					if strings.Contains(string(raw), other) {
						t.Errorf("%s shows %q of the other conversation", r["phase"], other)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			delete(notes, "rows_that_need_assistant_only_loss") // TestAnswersInCompletionsAreNoted checks it
			if diff := cmp.Diff(c.lost, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
