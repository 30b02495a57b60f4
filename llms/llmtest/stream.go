package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Stream is how an answer that is streamed is cut up, and in which of the ways
// that servers have it is odd.
type Stream struct {
	Piece    int           `yaml:"piece"`    // characters of text or arguments per event, default 16
	Write    int           `yaml:"write"`    // bytes per write, wherever that cuts; 0: an event at a time
	Delay    time.Duration `yaml:"delay"`    // before each write but the first
	Comments bool          `yaml:"comments"` // a comment and an event without data before each event
	CRLF     bool          `yaml:"crlf"`     // lines end in CR LF
	// Index of tool calls (chat API): missing, zero (for all of them), from_one.
	Index    string `yaml:"index"`
	Usage    string `yaml:"usage"`     // trailing (default), finish (with the reason), absent
	NoDone   bool   `yaml:"no_done"`   // the stream ends without [DONE]
	Roles    bool   `yaml:"roles"`     // the role is said in every event
	IDs      bool   `yaml:"ids"`       // each event has another id
	Unasked  bool   `yaml:"unasked"`   // usage is told though nobody asked for it
	NoFinish bool   `yaml:"no_finish"` // the stream ends without a reason to finish
}

func (s *Stream) check() error {
	switch {
	case s == nil:
		return nil
	case !slices.Contains([]string{"", "missing", "zero", "from_one"}, s.Index):
		return fmt.Errorf("unknown index %q: choose missing, zero or from_one", s.Index)
	case !slices.Contains([]string{"", "trailing", "finish", "absent"}, s.Usage):
		return fmt.Errorf("unknown place of usage %q: choose trailing, finish or absent", s.Usage)
	case s.Piece < 0 || s.Write < 0 || s.Delay < 0:
		return fmt.Errorf("piece, write and delay cannot be negative")
	}
	return nil
}

// defaultPiece is how many characters of text one event carries.
const defaultPiece = 16

// event is one server-sent event.
func event(name string, data []byte) []byte {
	if name != "" {
		return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
	}
	return fmt.Appendf(nil, "data: %s\n\n", data)
}

// dressed are events as the plan writes them.
func (s Stream) dressed(events [][]byte) [][]byte {
	var out [][]byte
	for _, e := range events {
		if s.Comments {
			e = append([]byte(": still here\n\nevent: ping\n\n"), e...)
		}
		if s.CRLF {
			e = bytes.ReplaceAll(e, []byte("\n"), []byte("\r\n"))
		}
		out = append(out, e)
	}
	if s.Write > 0 {
		out = slices.Collect(slices.Chunk(slices.Concat(out...), s.Write))
	}
	return out
}

// chatStream makes the chunks of one answer.
type chatStream struct {
	plan      Stream
	id, model string
	events    [][]byte
}

func (c *chatStream) chunk(choices []any, usage any) {
	id := c.id
	if c.plan.IDs {
		id = fmt.Sprintf("%s-%d", c.id, len(c.events))
	}
	body := map[string]any{"id": id, "object": "chat.completion.chunk", "created": 0, "model": c.model, "choices": choices}
	if usage != nil {
		body["usage"] = usage
	}
	c.events = append(c.events, event("", encoded(body)))
}

func (c *chatStream) delta(d map[string]any, finish, usage any) {
	if c.plan.Roles {
		d["role"] = "assistant"
	}
	c.chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, usage)
}

// call streams one tool call: its head, then its arguments in pieces.
func (c *chatStream) call(i int, call map[string]any) {
	fn, _ := call["function"].(map[string]any)
	send := func(d map[string]any) {
		switch c.plan.Index {
		case "missing":
		case "zero":
			d["index"] = 0
		case "from_one":
			d["index"] = i + 1
		default:
			d["index"] = i
		}
		c.delta(map[string]any{"tool_calls": []any{d}}, nil, nil)
	}
	head := maps.Clone(call)
	arguments, isText := fn["arguments"].(string)
	if isText {
		head["function"] = map[string]any{"name": fn["name"], "arguments": ""}
	}
	send(head)
	for piece := range pieces(arguments, c.plan.Piece) {
		send(map[string]any{"function": map[string]any{"arguments": piece}})
	}
}

// frames are a regular answer as server-sent events: the role, the text and the
// arguments in pieces, the end, the usage where it was asked for, [DONE].
func (r request) frames(answer []byte, plan Stream) [][]byte {
	var whole struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Choices []struct {
			Message      map[string]any `json:"message"`
			FinishReason string         `json:"finish_reason"`
		} `json:"choices"`
		Usage any `json:"usage"`
	}
	if json.Unmarshal(answer, &whole) != nil || len(whole.Choices) == 0 {
		return [][]byte{event("", answer)} // an answer that is none
	}
	c := &chatStream{plan: plan, id: whole.ID, model: whole.Model}
	message := whole.Choices[0].Message
	rest := maps.Clone(message)
	delete(rest, "content")
	delete(rest, "tool_calls")
	c.delta(rest, nil, nil)
	if text, ok := message["content"].(string); ok {
		for piece := range pieces(text, plan.Piece) {
			c.delta(map[string]any{"content": piece}, nil, nil)
		}
	} else if message["content"] != nil {
		c.delta(map[string]any{"content": message["content"]}, nil, nil)
	}
	calls, _ := message["tool_calls"].([]any)
	for i, v := range calls {
		if call, ok := v.(map[string]any); ok {
			c.call(i, call)
		}
	}
	usage := whole.Usage
	if plan.Usage == "absent" || !r.StreamOpts.Usage && !plan.Unasked {
		usage = nil
	}
	withFinish := usage
	if plan.Usage != "finish" {
		withFinish = nil
	}
	if !plan.NoFinish {
		c.delta(map[string]any{}, whole.Choices[0].FinishReason, withFinish)
	}
	if usage != nil && plan.Usage != "finish" {
		c.chunk([]any{}, usage)
	}
	if !plan.NoDone {
		c.events = append(c.events, event("", []byte("[DONE]")))
	}
	return c.events
}

// frames of the Messages API: each content block begins, comes in pieces, stops.
func (messagesRequest) frames(answer []byte, plan Stream) [][]byte {
	var whole map[string]any
	if json.Unmarshal(answer, &whole) != nil {
		return [][]byte{event("error", answer)}
	}
	var out [][]byte
	say := func(name string, fields map[string]any) {
		fields["type"] = name
		out = append(out, event(name, encoded(fields)))
	}
	start := maps.Clone(whole)
	start["content"], start["stop_reason"] = []any{}, nil
	say("message_start", map[string]any{"message": start})
	blocks, _ := whole["content"].([]any)
	for i, b := range blocks {
		block, _ := b.(map[string]any)
		head := maps.Clone(block)
		kind, field, text := "", "", ""
		switch block["type"] {
		case "text":
			kind, field = "text_delta", "text"
		case "thinking":
			kind, field = "thinking_delta", "thinking"
			head["signature"] = ""
		case "tool_use":
			kind, field = "input_json_delta", "partial_json"
			head["input"], text = map[string]any{}, string(encoded(block["input"]))
		}
		if kind == "text_delta" || kind == "thinking_delta" {
			text, _ = block[field].(string)
			head[field] = ""
		}
		say("content_block_start", map[string]any{"index": i, "content_block": head})
		for piece := range pieces(text, plan.Piece) {
			say("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: piece}})
		}
		if block["type"] == "thinking" {
			say("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "signature_delta", "signature": block["signature"]}})
		}
		say("content_block_stop", map[string]any{"index": i})
	}
	end := map[string]any{"delta": map[string]any{"stop_reason": whole["stop_reason"], "stop_sequence": nil}}
	if whole["usage"] != nil && plan.Usage != "absent" {
		end["usage"] = whole["usage"]
	}
	if !plan.NoFinish {
		say("message_delta", end)
	}
	if !plan.NoDone {
		say("message_stop", map[string]any{})
	}
	return out
}

// pieces cuts a text every so many characters: never within one, but within
// escapes of JSON.
func pieces(text string, every int) func(yield func(string) bool) {
	if every == 0 {
		every = defaultPiece
	}
	return func(yield func(string) bool) {
		for runes := range slices.Chunk([]rune(strings.ToValidUTF8(text, "\uFFFD")), every) {
			if !yield(string(runes)) {
				return
			}
		}
	}
}
