package providers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// The wire structs contain only the fields that are read. Content, arguments and usage are
// raw because their types differ between servers.
type wireResponse struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	XGroq   struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"x_groq"`
}

type wireChoice struct {
	Message      json.RawMessage `json:"message"`
	Usage        json.RawMessage `json:"usage"`
	FinishReason string          `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type wireMessage struct {
	Content          json.RawMessage `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ThinkingBlocks   json.RawMessage `json:"thinking_blocks"`
	ToolCalls        []wireCall      `json:"tool_calls"`
}

type wireCall struct {
	ID       json.RawMessage `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// decodeReply decodes an answer with status 200. history is the list of messages that were
// sent; the ids of calls must not occur in it. hour is true if the request asked the server
// to keep its prompt for an hour.
func decodeReply(raw []byte, history []llms.Message, hour bool) (schemas.Reply, *llms.Error) {
	var w wireResponse
	if err := json.Unmarshal(raw, &w); err != nil {
		return schemas.Reply{}, brokenBody(raw, err)
	}
	switch {
	case present(w.Error), w.Object == "error":
		return schemas.Reply{}, statusError(200, nil, raw)
	case len(w.Choices) > 0 && present(w.Choices[0].Error):
		return schemas.Reply{}, statusError(200, nil, wrapError(w.Choices[0].Error))
	case len(w.Choices) == 0 || !present(w.Choices[0].Message):
		return schemas.Reply{}, &llms.Error{Class: llms.ClassServer, Status: 200, Message: "the answer contains no message: " + excerpt(raw)}
	}
	choice := w.Choices[0]
	var m wireMessage
	if err := json.Unmarshal(choice.Message, &m); err != nil {
		return schemas.Reply{}, brokenBody(raw, err)
	}
	content, thinking, typed := contentText(m.Content)
	content = cmp.Or(content, m.Refusal)
	reply := schemas.Reply{
		Message:      content,
		Reasoning:    firstText(m.ReasoningContent, m.Reasoning, thinking, detailsText(m.ReasoningDetails)),
		FinishReason: choice.FinishReason,
		Model:        w.Model,
		Extra:        bytes.Clone(choice.Message),
		Truncated:    hitLimit(choice.FinishReason),
	}
	for _, blocks := range []json.RawMessage{m.ReasoningDetails, m.ThinkingBlocks, typed} {
		if present(blocks) {
			reply.ReasoningBlocks = bytes.Clone(blocks)
			break
		}
	}
	reply.Calls = decodeCalls(m.ToolCalls, reply.Truncated, history)
	reply.Usage, reply.CostUSD = decodeUsage(hour, w.Usage, choice.Usage, w.XGroq.Usage)
	return reply, nil
}

// contentText decodes a content that is null, a string or an array of parts. blocks is the
// whole array if it contains more than text.
func contentText(raw json.RawMessage) (text string, thinking, blocks json.RawMessage) {
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil, nil
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
		if present(p.Thinking) {
			blocks = raw
			if thinking == nil {
				thinking = p.Thinking
			}
		}
	}
	return all.String(), thinking, blocks
}

// detailsText joins the texts in a reasoning_details list.
func detailsText(raw json.RawMessage) json.RawMessage {
	var parts []struct {
		Text    string `json:"text"`
		Summary string `json:"summary"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text + p.Summary)
	}
	text, err := json.Marshal(all.String())
	if err != nil {
		return nil
	}
	return text
}

// firstText returns the first text in the fields, each a string or text parts.
func firstText(fields ...json.RawMessage) string {
	for _, raw := range fields {
		if text, _, _ := contentText(raw); text != "" {
			return text
		}
	}
	return ""
}

// decodeUsage reads the server's token counts from the first of places that has any, in the
// spelling of either API. It returns nil if there are none.
func decodeUsage(hour bool, places ...json.RawMessage) (*schemas.Usage, *float64) {
	type details struct {
		Cached    *float64   `json:"cached_tokens"`
		Written   *float64   `json:"cache_write_tokens"`
		Created   *float64   `json:"cache_creation_tokens"` // some gateways' name for it
		Times     cacheTimes `json:"cache_creation_token_details"`
		Reasoning *float64   `json:"reasoning_tokens"`
	}
	for _, raw := range places {
		var u struct {
			Prompt      *float64 `json:"prompt_tokens"`
			Completion  *float64 `json:"completion_tokens"`
			Input       *float64 `json:"input_tokens"`
			Output      *float64 `json:"output_tokens"`
			Cached      *float64 `json:"cached_tokens"`
			CacheHit    *float64 `json:"prompt_cache_hit_tokens"`
			Reasoning   *float64 `json:"reasoning_tokens"`
			Cost        *float64 `json:"cost"` // USD; some routers report it
			PromptD     details  `json:"prompt_tokens_details"`
			CompletionD details  `json:"completion_tokens_details"`
			cacheUsage
		}
		if !present(raw) || json.Unmarshal(raw, &u) != nil {
			continue
		}
		prompt, completion := cmp.Or(u.Prompt, u.Input), cmp.Or(u.Completion, u.Output)
		if prompt == nil && completion == nil {
			continue
		}
		if u.Cost != nil && *u.Cost < 0 {
			u.Cost = nil
		}
		out := schemas.Usage{
			Prompt: count(prompt), Completion: count(completion),
			Cached:    max(count(cmp.Or(u.PromptD.Cached, u.CacheHit, u.Cached)), count(u.Read)),
			Reasoning: count(cmp.Or(u.CompletionD.Reasoning, u.Reasoning)),
		}
		u.Created.Minutes, u.Created.Hour = cmp.Or(u.Created.Minutes, u.PromptD.Times.Minutes), cmp.Or(u.Created.Hour, u.PromptD.Times.Hour)
		out.CacheWrite, out.CacheWrite1h = u.Created.written(hour, u.Write, u.PromptD.Written, u.PromptD.Created)
		// Anthropic does not count cached tokens as input. Nor do gateways that pass its
		// numbers on, whose cached tokens may exceed the prompt.
		separate := u.Prompt == nil && (u.Read != nil || u.Write != nil)
		if separate || out.Cached+out.CacheWrite > out.Prompt {
			out.Prompt += out.Cached + out.CacheWrite
		}
		return &out, u.Cost
	}
	return nil, nil
}

func count(f *float64) int64 {
	if f == nil || *f < 0 || *f > math.MaxInt32*1024 {
		return 0
	}
	return int64(*f)
}

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null"
}

func wrapError(e json.RawMessage) []byte {
	return append(append([]byte(`{"error":`), e...), '}')
}

// decodeModels decodes a list of models. Servers have different names for the context
// limit.
func decodeModels(raw []byte) ([]llms.ModelInfo, *llms.Error) {
	var list struct {
		Data []struct {
			ID      string   `json:"id"`
			VLLM    *float64 `json:"max_model_len"`
			Router  *float64 `json:"context_length"`
			Groq    *float64 `json:"context_window"`
			Mistral *float64 `json:"max_context_length"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, brokenBody(raw, err)
	}
	var out []llms.ModelInfo
	for _, m := range list.Data {
		out = append(out, llms.ModelInfo{ID: m.ID, ContextLimit: count(cmp.Or(m.VLLM, m.Router, m.Groq, m.Mistral))})
	}
	return out, nil
}
