package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/sinks"
)

// A view lists which texts of a row are trained on and which are masked; the others are context. Each
// format masks a mistake in its way, and answers of tools are context unless the trainer's default loss
// includes them.
func TestEveryTextIsTrainedMaskedOrContext(t *testing.T) {
	for kind, whole := range map[string]bool{
		"sft-openai": true, "sft-axolotl": true, "sft-sharegpt": true, "sft-verl": true, "debug-gym-sft": true, "sft-trl": false, "sft-text": false,
	} {
		rows, _ := rowsOf(t, kind, sinks.ViewOptions{}, episodeWithMistake())
		if whole != (len(rows) == 1) {
			t.Errorf("%s: %d rows", kind, len(rows))
		}
		trained := map[string]int{}
		for i, row := range rows {
			rest := slices.Clone(row.Texts)
			for _, text := range slices.Concat(row.Trained, row.Masked) {
				at := slices.Index(rest, text)
				if at < 0 {
					t.Errorf("%s row %d: %q is trained on or masked, but is not a text of the row", kind, i, text)
					continue
				}
				rest = slices.Delete(rest, at, at+1)
			}
			if got := strings.Join(row.Trained, "|"); strings.Contains(got, "WRONG") || strings.Contains(got, "was answered") {
				t.Errorf("%s row %d trains on %s", kind, i, got)
			}
			later := strings.Contains(strings.Join(row.Texts, "|"), "OMEGA")
			if got := strings.Join(row.Masked, "|"); later != strings.Contains(got, "I try WRONG") || strings.Contains(got, "ALPHA") || strings.Contains(got, "was answered") {
				t.Errorf("%s row %d masks %q", kind, i, got)
			}
			for _, text := range row.Trained {
				trained[text]++
			}
		}
		for _, text := range []string{"I try ALPHA", "I try OMEGA", "It is FINAL"} {
			if trained[text] != 1 {
				t.Errorf("%s trains %d times on %q", kind, trained[text], text)
			}
		}
	}
	rows, _ := rowsOf(t, "sft-trl", sinks.ViewOptions{Mask: sinks.MaskNone}, episodeWithMistake())
	if got := strings.Join(rows[0].Trained, "|"); !strings.Contains(got, "WRONG was answered") {
		t.Errorf("the default trains on answers in a completion, but the row trains on: %s", got)
	}
	rows, _ = rowsOf(t, "atif", sinks.ViewOptions{}, episodeWithMistake())
	if len(rows[0].Trained)+len(rows[0].Masked) != 0 {
		t.Error("a record of what happened has texts to train on")
	}
}
