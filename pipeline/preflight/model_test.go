package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms"
)

// A canary call is sent as the configuration says, but its answer is short, in whichever field the
// configuration limits it, and a tool_choice that names another tool is left out.
func TestCanarySampling(t *testing.T) {
	t.Parallel()
	limit, large, hot := CanaryTokens, 9000, 0.9
	for name, c := range map[string]struct{ have, want llms.Sampling }{
		"unset":       {llms.Sampling{}, llms.Sampling{MaxTokens: &limit}},
		"limited":     {llms.Sampling{MaxTokens: &large, Temperature: &hot}, llms.Sampling{MaxTokens: &limit, Temperature: &hot}},
		"other field": {llms.Sampling{Extra: map[string]any{"max_completion_tokens": 9000, "a": 1}}, llms.Sampling{Extra: map[string]any{"max_completion_tokens": limit, "a": 1}}},
		"both":        {llms.Sampling{MaxTokens: &large, Extra: map[string]any{"max_output_tokens": -1}}, llms.Sampling{Extra: map[string]any{"max_output_tokens": limit}}},
		"thinking":    {llms.Sampling{Extra: map[string]any{"thinking": map[string]any{"budget_tokens": 4000}}}, llms.Sampling{Extra: map[string]any{}, MaxTokens: &limit}},
		"tool choice": {llms.Sampling{ToolChoice: "edit"}, llms.Sampling{MaxTokens: &limit}},
		"required":    {llms.Sampling{ToolChoice: "required"}, llms.Sampling{MaxTokens: &limit, ToolChoice: "required"}},
	} {
		before := len(c.have.Extra)
		if diff := cmp.Diff(c.want, canarySampling(c.have)); diff != "" || len(c.have.Extra) != before {
			t.Errorf("%s: %s", name, diff)
		}
	}
	configured := llms.Sampling{Extra: map[string]any{"max_tokens": 9000}}
	if canarySampling(configured); configured.Extra["max_tokens"] != 9000 {
		t.Error("the configuration was changed")
	}
}
