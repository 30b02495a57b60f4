package views_test

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/sinks"
)

// A model that writes its calls as text is trained on texts: no calls, no tools,
// answers from the user, no two of them in a row.
func TestTextEpisodesStayText(t *testing.T) {
	in := trajectory()
	style := "text"
	in.Episode.ToolCallStyle = &style
	rows, _ := render(t, "sft-trl", sinks.ViewOptions{Mask: sinks.MaskNone, AllowGold: true}, in)
	if len(rows) != 1 || len(rows[0]["tools"].([]any)) != 0 {
		t.Fatalf("rows %v", rows)
	}
	spelt := roles(rows[0]["messages"])
	if strings.Contains(spelt, "t") || strings.Contains(spelt, "uu") {
		t.Errorf("roles %s", spelt)
	}
	for _, m := range rows[0]["messages"].([]any) {
		if m := m.(map[string]any); m["tool_calls"] != nil || m["tool_call_id"] != nil {
			t.Errorf("message %v", m)
		}
	}
}
