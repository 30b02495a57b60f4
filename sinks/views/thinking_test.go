package views_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/sinks"
)

// enable_thinking changes how a template renders a prompt. It is written only for templates
// with which the rendered prompt is still a prefix of the rendered prompt and completion.
func TestThinkingIsWrittenForNamedTemplatesOnly(t *testing.T) {
	in := withoutGold(shortEpisode(1)) // its first turn has reasoning
	silent := withoutGold(shortEpisode(1))
	for i := range silent.Steps {
		silent.Steps[i].Reasoning = nil
	}
	for kind, thinking := range map[string]string{"sft-trl": sinks.ThinkingField, "infoseek-next-action": sinks.ThinkingField, "sft-verl": sinks.ThinkingInline} {
		if out := outputOf(t, kind, sinks.ViewOptions{Thinking: thinking}, in); strings.Contains(out, "enable_thinking") || strings.Contains(out, "chat_template_kwargs") {
			t.Errorf("%s writes enable_thinking although no template is named", kind)
		}
		for want, in := range map[string]sinks.Trajectory{`"enable_thinking":true`: in, `"enable_thinking":false`: silent} {
			rows, _ := rowsOf(t, kind, sinks.ViewOptions{Thinking: thinking, ChatTemplate: "qwen3_training"}, in)
			if len(rows) == 0 {
				t.Errorf("%s: no rows", kind)
			}
			for _, row := range rows {
				if line := canonical(t, row.Value); !bytes.Contains(line, []byte(want)) {
					t.Errorf("%s: %s is missing in %.200s", kind, want, line)
				}
			}
		}
		for _, name := range []string{"qwen3", "qwen2_5", "Qwen/Qwen3-8B"} {
			_, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{ChatTemplate: name})
			if err == nil || !strings.Contains(err.Error(), "choose one of gemma4,") || !strings.Contains(err.Error(), "omit --chat-template") {
				t.Errorf("%s for %s: %v", kind, name, err)
			}
		}
	}
	for _, kind := range []string{"sft-openai", "sft-text", "atif", "infoseek-locate"} {
		if _, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{ChatTemplate: "qwen3_training"}); err == nil || !strings.Contains(err.Error(), "omit --chat-template") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
