package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// The wire structs name only what is read; content, arguments and usage stay
// raw because servers disagree about their types.
type wireResponse struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type wireChoice struct {
	Message      json.RawMessage `json:"message"`
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

// decodeReply reads a 200 answer. history is the list that was sent: call ids
// must be new to it. Errors are *llms.Error.
func decodeReply(raw []byte, history []llms.Message) (schemas.Reply, error) {
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
		return schemas.Reply{}, &llms.Error{Class: llms.ClassServer, Status: 200, Message: "the answer holds no message: " + excerpt(raw)}
	}
	choice := w.Choices[0]
	var m wireMessage
	if err := json.Unmarshal(choice.Message, &m); err != nil {
		return schemas.Reply{}, brokenBody(raw, err)
	}
	content, thinking, typed := contentText(m.Content)
	if content == "" {
		content = m.Refusal
	}
	reply := schemas.Reply{
		Message:      content,
		Reasoning:    firstText(m.ReasoningContent, m.Reasoning, thinking, detailsText(m.ReasoningDetails)),
		FinishReason: choice.FinishReason,
		Model:        w.Model,
		Extra:        bytes.Clone(choice.Message),
		Raw:          raw,
		Calls:        decodeCalls(m.ToolCalls, choice.FinishReason, history),
	}
	for _, blocks := range []json.RawMessage{m.ReasoningDetails, m.ThinkingBlocks, typed} {
		if present(blocks) {
			reply.ReasoningBlocks = bytes.Clone(blocks)
			break
		}
	}
	reply.Usage, reply.CostUSD = decodeUsage(w.Usage)
	return reply, nil
}

// contentText reads a content that is null, a string or an array of parts.
// blocks is the whole array where it holds more than text.
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

// detailsText joins the texts of a reasoning_details list.
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

// firstText is the first field that holds text, as a string or as text parts.
func firstText(fields ...json.RawMessage) string {
	for _, raw := range fields {
		if text, _, _ := contentText(raw); text != "" {
			return text
		}
	}
	return ""
}

// cutOff is what is wrong with a call whose arguments were not finished.
const cutOff = "the reply hit the token limit and the call was cut off; send a shorter one"

// decodeCalls reads the calls in order. A missing id, or one that is taken
// already, becomes call_<turn>_<n>: the turn is counted from the history, so
// the same conversation always gives the same ids.
func decodeCalls(calls []wireCall, finish string, history []llms.Message) []schemas.ToolCall {
	taken, turn := map[string]bool{}, 0
	for _, m := range history {
		if m.Role == "assistant" {
			turn++
		}
		for _, c := range m.ToolCalls {
			taken[c.ID] = true
		}
	}
	var out []schemas.ToolCall
	for n, w := range calls {
		id := ""
		if json.Unmarshal(w.ID, &id) != nil || id == "" || taken[id] {
			id = fmt.Sprintf("call_%d_%d", turn, n)
			for taken[id] {
				id += "_"
			}
		}
		taken[id] = true
		call := schemas.ToolCall{ID: id, Name: w.Function.Name}
		decodeArguments(&call, w.Function.Arguments)
		if call.Invalid != "" && finish == "length" {
			call.Invalid = cutOff
		}
		out = append(out, call)
	}
	return out
}

// decodeArguments fills Arguments, Raw and Invalid. A string holding an object
// is the norm; an object in its place and a string encoded twice are taken too,
// with the model's own text kept. Nothing else is mended.
func decodeArguments(call *schemas.ToolCall, raw json.RawMessage) {
	text := string(raw)
	if !present(raw) {
		text = ""
	} else if raw[0] == '"' {
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
	}
	call.Raw = text
	inner := text
	if strings.HasPrefix(strings.TrimSpace(text), `"`) {
		var once string
		if json.Unmarshal([]byte(text), &once) == nil {
			inner = once
		}
	}
	if strings.TrimSpace(inner) == "" {
		inner = "{}" // how several servers say "no arguments"
	}
	args, err := canonicalObject(inner)
	if err != nil {
		call.Arguments, call.Invalid = json.RawMessage("{}"), err.Error()
		return
	}
	call.Arguments = args
	if call.Raw == string(args) {
		call.Raw = ""
	}
}

// canonicalObject parses exactly one JSON object.
func canonicalObject(text string) (json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("arguments are not valid JSON: %w", err)
	}
	if strings.TrimSpace(text[dec.InputOffset():]) != "" {
		return nil, fmt.Errorf("arguments hold more than one JSON value")
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, fmt.Errorf("arguments must be a JSON object")
	}
	return schemas.CanonicalJSON(v)
}

func isObject(text string) bool {
	var v map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &v) == nil && v != nil
}

// decodeUsage reads what the server counted; nil where it said nothing usable.
func decodeUsage(raw json.RawMessage) (*schemas.Usage, *float64) {
	var u struct {
		Prompt     *float64 `json:"prompt_tokens"`
		Completion *float64 `json:"completion_tokens"`
		CacheHit   *float64 `json:"prompt_cache_hit_tokens"`
		Cost       *float64 `json:"cost"` // USD; some routers report it
		PromptD    struct {
			Cached *float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionD struct {
			Reasoning *float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if !present(raw) || json.Unmarshal(raw, &u) != nil || (u.Prompt == nil && u.Completion == nil) {
		return nil, nil
	}
	cached := u.PromptD.Cached
	if cached == nil {
		cached = u.CacheHit
	}
	if u.Cost != nil && *u.Cost < 0 {
		u.Cost = nil
	}
	return &schemas.Usage{
		Prompt: count(u.Prompt), Completion: count(u.Completion), Cached: count(cached), Reasoning: count(u.CompletionD.Reasoning),
	}, u.Cost
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
