package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/sinks"
)

// If the model writes its calls as text, rows contain only texts: no calls, no tools, and
// answers as user messages, never two in a row.
func TestTextEpisodesStayText(t *testing.T) {
	in := trajectory()
	style := "text"
	in.Episode.ToolCallStyle = &style
	rows, _ := render(t, "sft-trl", sinks.ViewOptions{Mask: sinks.MaskNone, AllowGold: true}, in)
	if len(rows) != 1 || len(rows[0]["tools"].([]any)) != 0 {
		t.Fatalf("rows %v", rows)
	}
	list := slices.Concat(rows[0]["prompt"].([]any), rows[0]["completion"].([]any))
	letters := roles(list)
	if strings.Contains(letters, "t") || strings.Contains(letters, "uu") {
		t.Errorf("roles %s", letters)
	}
	for _, m := range list {
		if m := m.(map[string]any); m["tool_calls"] != nil || m["tool_call_id"] != nil {
			t.Errorf("message %v", m)
		}
	}
}
