package views

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// supportedOptions lists the values that a view accepts for each of the common options, with the
// default first. A view refuses an option whose list is nil.
type supportedOptions struct {
	mask, arguments, thinking, tools, content []string
	// chatTemplate means that rows have a place for enable_thinking.
	chatTemplate bool
	// noConversation means that rows do not hold a conversation. The view then refuses the
	// options that choose or change one.
	noConversation bool
}

var (
	anyMask = sinks.Masks
	// rowMasks are for trainers whose loss is on whole completions: by default a row trains
	// one turn.
	rowMasks = []string{sinks.MaskSplitRows, sinks.MaskContext, sinks.MaskCut, sinks.MaskNone, sinks.MaskDropEpisode}
	// wholeMasks are for rows whose trainer trains on every reply; see foldMasked.
	wholeMasks = []string{sinks.MaskContext, sinks.MaskCut, sinks.MaskNone, sinks.MaskDropEpisode}
	// recordMasks are for formats that record an episode and are not for training.
	recordMasks  = []string{sinks.MaskContext}
	objectFirst  = []string{sinks.ArgumentsObject, sinks.ArgumentsString}
	stringFirst  = []string{sinks.ArgumentsString, sinks.ArgumentsObject}
	fieldFirst   = []string{sinks.ThinkingField, sinks.ThinkingInline, sinks.ThinkingDrop}
	dropOrInline = []string{sinks.ThinkingDrop, sinks.ThinkingInline}
	inlineOrDrop = []string{sinks.ThinkingInline, sinks.ThinkingDrop}
	listFirst    = []string{sinks.ToolsList, sinks.ToolsJSON}
	emptyFirst   = []string{sinks.ContentEmpty, sinks.ContentOmit}
	jsonFirst    = []string{sinks.ToolsJSON, sinks.ToolsList}
)

// thinkingTemplates lists the chat templates, by their names in TRL, that read
// enable_thinking. With them, the rendered prompt of every row is a prefix of its rendered
// prompt and completion, whatever the mask. `make trainers` measures this; see testdata/trl/masks.json.
var thinkingTemplates = []string{
	"gemma4", "gemma4_v2", "gemma4_v3", "gemma4_v4", "glm4moe", "glm4moe_training",
	"qwen3_5_nothink", "qwen3_5_nothink_training", "qwen3_5_think", "qwen3_5_think_training", "qwen3_6", "qwen3_6_training",
	"qwen3_8", "qwen3_8_training", "qwen3_instruct_2507_training", "qwen3_training",
}

// withMasks returns the options with another choice of masks.
func (s supportedOptions) withMasks(masks ...string) supportedOptions {
	s.mask = masks
	return s
}

// check fills in the defaults and refuses values that the view does not support.
func (s supportedOptions) check(o sinks.ViewOptions) (sinks.ViewOptions, error) {
	system, trim := []string{sinks.SystemKeep, sinks.SystemDrop, sinks.SystemReplace}, []string{sinks.TrimNone, sinks.TrimResolved}
	if s.noConversation {
		system, trim = nil, nil
		if o.Phase != "" {
			return o, errors.New("its rows hold no conversation: omit --phase")
		}
	}
	switch {
	case o.ChatTemplate == "":
	case !s.chatTemplate:
		return o, errors.New("it does not support a chat template: omit --chat-template")
	case !slices.Contains(thinkingTemplates, o.ChatTemplate):
		return o, fmt.Errorf("chat-template %q: with this template, the rendered prompt may not be a prefix "+
			"of the rendered prompt and completion: choose one of %s, or omit --chat-template", o.ChatTemplate, strings.Join(thinkingTemplates, ", "))
	}
	for _, option := range []struct {
		name  string
		value *string
		valid []string
	}{
		{"mask", &o.Mask, s.mask},
		{"arguments", &o.Arguments, s.arguments},
		{"thinking", &o.Thinking, s.thinking},
		{"tools", &o.Tools, s.tools},
		{"content-null", &o.ContentNull, s.content},
		{"system", &o.System, system},
		{"trim", &o.Trim, trim},
	} {
		switch {
		case *option.value == "" && len(option.valid) > 0:
			*option.value = option.valid[0]
		case *option.value == "":
		case len(option.valid) == 0:
			return o, fmt.Errorf("it does not support %s: omit --%s", option.name, option.name)
		case !slices.Contains(option.valid, *option.value):
			return o, fmt.Errorf("%s %q: choose one of %s", option.name, *option.value, strings.Join(option.valid, ", "))
		}
	}
	return o, nil
}
