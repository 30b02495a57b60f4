package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	for _, s := range shapes {
		register(s)
	}
}

// shapes lists the views that write training formats. The file that contains a row
// function describes the format.
var shapes = []shape{
	{
		kind: "sft-trl", summary: "conversations for TRL's SFTTrainer: prompt, completion, object arguments",
		container: sinks.JSONLGz, loss: lossOnCompletion, row: trlRow,
		options: trlOptions,
		build:   func(v *renderer, _ any) (sinks.View, error) { return sftTRL{v}, nil },
	},
	{
		kind: "sft-openai", summary: "chat fine-tuning JSON lines of OpenAI and Together: string arguments, weight",
		container: sinks.JSONL, loss: lossByWeight, row: openAIRow,
		options: supportedOptions{
			mask: anyMask, arguments: []string{sinks.ArgumentsString}, thinking: dropOrInline, tools: []string{sinks.ToolsList}, content: emptyFirst,
		},
	},
	{
		kind: "sft-axolotl", summary: "conversations for Axolotl's chat_template type: train on each message",
		container: sinks.JSONL, loss: lossByTrain, row: axolotlRow,
		options: axolotlOptions,
	},
	{
		kind: "sft-sharegpt", summary: "ShareGPT conversations for LLaMA-Factory, with the entry for dataset_info.json",
		container: sinks.JSONL, loss: lossOnReplies, row: shareGPTRow,
		options: supportedOptions{
			mask: append(slices.Clone(wholeMasks), sinks.MaskSplitRows), thinking: inlineOrDrop, tools: []string{sinks.ToolsJSON},
		},
		build: func(v *renderer, _ any) (sinks.View, error) { return sftShareGPT{v}, nil },
	},
	{
		kind: "sft-text", summary: "prompt and completion, or text, rendered with a named template",
		container: sinks.Parquet, loss: lossOnReplies, row: textRow,
		options:  supportedOptions{mask: anyMask, thinking: inlineOrDrop},
		settings: func() any { return &sftTextConfig{Template: "chatml"} },
		build:    buildText,
	},
	{
		kind: "sft-verl", summary: "conversations for verl's MultiTurnSFTDataset: Parquet, every reply is trained on",
		container: sinks.Parquet, loss: lossOnReplies, row: verlRow,
		options: supportedOptions{mask: wholeMasks, chatTemplate: true, thinking: dropOrInline},
		build:   func(v *renderer, _ any) (sinks.View, error) { return v.withTemplate("chatml") },
	},
	{
		kind: "debug-gym-sft", summary: "the seven keys that debug-gym's SFT data viewer reads",
		container: sinks.JSONL, loss: lossOnReplies, row: debugGymRow,
		options: supportedOptions{mask: wholeMasks, arguments: stringFirst, thinking: fieldFirst, tools: []string{sinks.ToolsList}},
	},
}

// Options of sft-trl and sft-axolotl, which other views with the same rows also use.
var (
	trlOptions = supportedOptions{
		mask: rowMasks, chatTemplate: true, arguments: objectFirst, thinking: fieldFirst, tools: listFirst, content: emptyFirst,
	}
	axolotlOptions = supportedOptions{
		mask: anyMask, arguments: stringFirst, thinking: fieldFirst, tools: jsonFirst, content: emptyFirst,
	}
)
