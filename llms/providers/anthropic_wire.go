package providers

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// anthropicID matches the ids of tool calls that the API accepts.
var anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// anthropicBlock contains the fields of a content block that are read.
type anthropicBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
}

// anthropicBlocks returns the role and the content blocks of a message. Tool results have
// the role user in this API.
func anthropicBlocks(m llms.Message) (anthropic.MessageParamRole, []anthropic.ContentBlockParamUnion) {
	if m.Role == "tool" {
		result := anthropic.ToolResultBlockParam{ToolUseID: vendorID(anthropicID, m.ToolCallID)}
		if m.Content != "" {
			result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: m.Content}}}
		}
		return anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion{{OfToolResult: &result}}
	}
	var blocks []anthropic.ContentBlockParamUnion
	if m.Role == "assistant" {
		if blocks = rawBlocks(m); blocks != nil {
			return anthropic.MessageParamRoleAssistant, blocks
		}
	}
	if strings.TrimSpace(m.Content) != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Content))
	}
	if m.Role != "assistant" {
		return anthropic.MessageParamRoleUser, blocks
	}
	for _, call := range m.ToolCalls {
		blocks = append(blocks, anthropic.NewToolUseBlock(vendorID(anthropicID, call.ID), json.RawMessage(echoArguments(call)), call.Name))
	}
	return anthropic.MessageParamRoleAssistant, blocks
}

// rawBlocks returns the blocks of an assistant message as received. It returns nil if the
// message comes from another provider or its calls have other ids.
func rawBlocks(m llms.Message) []anthropic.ContentBlockParamUnion {
	var got struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m.Raw, &got) != nil {
		return nil
	}
	var out []anthropic.ContentBlockParamUnion
	var ids []string
	for _, raw := range got.Content {
		var b anthropicBlock
		if json.Unmarshal(raw, &b) != nil || b.Type == "" {
			return nil
		}
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			continue // the server sends empty texts but refuses them
		}
		out = append(out, param.Override[anthropic.ContentBlockParamUnion](raw))
	}
	if !slices.EqualFunc(ids, m.ToolCalls, func(id string, c schemas.ToolCall) bool { return id == c.ID }) {
		return nil
	}
	return out
}

// markCache asks the server to cache two prefixes: the system prompt with the tools, and the
// whole conversation so far.
func (c *Anthropic) markCache(p *anthropic.MessageNewParams) {
	if c.cache == "off" {
		return
	}
	mark := anthropic.CacheControlEphemeralParam{TTL: anthropic.CacheControlEphemeralTTL(c.cache)}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	if len(p.Messages) == 0 {
		return
	}
	content := p.Messages[len(p.Messages)-1].Content
	if len(content) == 0 {
		return
	}
	switch last := content[len(content)-1]; {
	case last.OfText != nil:
		last.OfText.CacheControl = mark
	case last.OfToolResult != nil:
		last.OfToolResult.CacheControl = mark
	}
}

// patchBody adds the sampling parameters.
func (c *Anthropic) patchBody(body map[string]any, r llms.Request) error {
	if r.Sampling.Temperature != nil {
		body["temperature"] = *r.Sampling.Temperature
	}
	if r.Sampling.TopP != nil {
		body["top_p"] = *r.Sampling.TopP
	}
	maps.Copy(body, r.Sampling.Extra)
	return nil
}

// decodeAnthropic decodes an answer with status 200. hour is true if the request asked the
// server to keep its prompt for an hour.
func decodeAnthropic(raw []byte, history []llms.Message, hour bool) (schemas.Reply, *llms.Error) {
	var w struct {
		Type       string            `json:"type"`
		Model      string            `json:"model"`
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      json.RawMessage   `json:"usage"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return schemas.Reply{}, brokenBody(raw, err)
	}
	switch {
	case w.Type == "error":
		return schemas.Reply{}, statusError(200, nil, raw)
	case w.Type != "message":
		return schemas.Reply{}, &llms.Error{Class: llms.ClassServer, Status: 200, Message: "the answer is not a message: " + excerpt(raw)}
	}
	reply := schemas.Reply{FinishReason: w.StopReason, Model: w.Model, Truncated: hitLimit(w.StopReason), Usage: anthropicUsage(w.Usage, hour)}
	var texts, thoughts []string
	var calls []wireCall
	var thinking []json.RawMessage
	for _, blockRaw := range w.Content {
		var b anthropicBlock
		if err := json.Unmarshal(blockRaw, &b); err != nil {
			return schemas.Reply{}, brokenBody(raw, err)
		}
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "thinking", "redacted_thinking":
			thinking = append(thinking, blockRaw)
			if b.Thinking != "" {
				thoughts = append(thoughts, b.Thinking)
			}
		case "tool_use":
			call := wireCall{}
			call.ID, _ = json.Marshal(b.ID)
			call.Function.Name, call.Function.Arguments = b.Name, b.Input
			calls = append(calls, call)
		}
	}
	reply.Message, reply.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "\n\n")
	reply.Calls = decodeCalls(calls, reply.Truncated, history)
	// The API also sends the input of a call that was cut off as a valid object.
	if n := len(reply.Calls); n > 0 && len(w.Content) > 0 && reply.Truncated {
		var last anthropicBlock
		if json.Unmarshal(w.Content[len(w.Content)-1], &last) == nil && last.Type == "tool_use" {
			reply.Calls[n-1].Invalid, reply.Calls[n-1].Truncated = cutOff, true
		}
	}
	var err error
	if reply.Extra, err = json.Marshal(map[string]any{"role": "assistant", "content": w.Content}); err != nil {
		return schemas.Reply{}, brokenBody(raw, err)
	}
	if len(thinking) > 0 {
		if reply.ReasoningBlocks, err = json.Marshal(thinking); err != nil {
			return schemas.Reply{}, brokenBody(raw, err)
		}
	}
	return reply, nil
}

// anthropicUsage decodes the token counts. Prompt is the whole prompt; the API reports
// tokens that it read from or wrote to its cache separately from the input.
func anthropicUsage(raw json.RawMessage, hour bool) *schemas.Usage {
	var u struct {
		Input  *float64 `json:"input_tokens"`
		Output *float64 `json:"output_tokens"`
		cacheUsage
	}
	if !present(raw) || json.Unmarshal(raw, &u) != nil || (u.Input == nil && u.Output == nil) {
		return nil
	}
	written, forHour := u.Created.written(hour, u.Write)
	return &schemas.Usage{
		Prompt: count(u.Input) + count(u.Read) + written, Completion: count(u.Output),
		Cached: count(u.Read), CacheWrite: written, CacheWrite1h: forHour,
	}
}
