package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// responsesRequest is what is read of a request to the Responses API, stateless:
// the whole conversation as input items.
type responsesRequest struct {
	Name         string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Offered      json.RawMessage `json:"tools"`
	MaxTokens    int64           `json:"max_output_tokens"`
	Stream       bool            `json:"stream"`
	Previous     string          `json:"previous_response_id"`
}

// item is one of the input.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// byModel tells whether the model has made the item.
func (i item) byModel() bool {
	return i.Role == "assistant" || i.Type == "function_call" || i.Type == "reasoning"
}

func decodeResponses(body []byte) (conversation, error) {
	var r responsesRequest
	err := json.Unmarshal(body, &r)
	return r, err
}

func (r responsesRequest) raw() (list []json.RawMessage) {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		return []json.RawMessage{encoded(map[string]any{"role": "user", "content": text})}
	}
	_ = json.Unmarshal(r.Input, &list) // check says so
	return list
}

func (r responsesRequest) items() []item {
	raw := r.raw()
	out := make([]item, len(raw))
	for i := range raw {
		if json.Unmarshal(raw[i], &out[i]) != nil {
			out[i].Type = "unreadable"
		}
		out[i].Type = cmp.Or(out[i].Type, "message")
	}
	return out
}

func (r responsesRequest) model() string          { return r.Name }
func (r responsesRequest) tools() json.RawMessage { return r.Offered }
func (r responsesRequest) limit() int64           { return r.MaxTokens }
func (r responsesRequest) streamed() bool         { return r.Stream }
func (responsesRequest) errorEvent() string       { return "error" }

func (responsesRequest) failure(status int, code, message string) []byte {
	return request{}.failure(status, code, message)
}

// said has one message for all that the model made in a row.
func (r responsesRequest) said() []said {
	var out []said
	if r.Instructions != "" {
		out = append(out, said{Role: "system", Text: r.Instructions})
	}
	made := false
	for _, i := range r.items() {
		s := said{Role: cmp.Or(i.Role, "tool"), Text: plainText(i.Content), ID: i.CallID}
		switch {
		case i.Role == "developer":
			s.Role = "system"
		case i.Type == "function_call":
			s.Text = i.Name + " " + i.Arguments
		case i.Type == "function_call_output":
			s.Text = plainText(i.Output)
		}
		if i.byModel() && made {
			out[len(out)-1].Text += " " + s.Text
			continue
		}
		if made = i.byModel(); made {
			s.Role = "assistant"
		}
		out = append(out, s)
	}
	return out
}

func (r responsesRequest) check([]byte) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Previous != "" {
		bad("previous_response_id is sent: nothing is stored here, send the conversation as input")
	}
	names := toolNames(r.Offered)
	for i, name := range names {
		if !toolName.MatchString(name) || slices.Contains(names[:i], name) {
			bad("tool %d (%s): the name is not well formed or doubled", i, name)
		}
	}
	items := r.items()
	if len(items) == 0 {
		bad("input is neither a text nor a list with something in it")
	}
	var open []string
	for n, i := range items {
		switch i.Type {
		case "message":
			if len(open) > 0 && i.Role != "assistant" {
				bad("item %d: tool calls %v have no output", n, open)
				open = nil
			}
		case "reasoning":
		case "function_call":
			if i.CallID == "" || slices.Contains(open, i.CallID) || !json.Valid([]byte(i.Arguments)) {
				bad("item %d: call %q is not well formed or doubled", n, i.CallID)
			}
			open = append(open, i.CallID)
		case "function_call_output":
			at := slices.Index(open, i.CallID)
			if at < 0 {
				bad("item %d answers call %q, which is not open", n, i.CallID)
				continue
			}
			open = slices.Delete(open, at, at+1)
		default:
			bad("item %d is of type %q", n, i.Type)
		}
	}
	if len(open) > 0 {
		bad("tool calls %v have no output", open)
	}
	return out
}

func (r responsesRequest) prefix(previous Exchange) string {
	var before responsesRequest
	if json.Unmarshal(previous.Body, &before) != nil {
		return ""
	}
	if !sameJSON(encoded(before.Offered), encoded(r.Offered)) || before.Instructions != r.Instructions {
		return "the tools or the instructions differ from the turn before"
	}
	was, is := before.raw(), r.raw()
	if len(is) <= len(was) {
		return "the conversation did not grow"
	}
	for i, m := range was {
		if !sameJSON(m, is[i]) {
			return fmt.Sprintf("item %d was rewritten:\n%s", i, lineDiff(m, is[i]))
		}
	}
	return ""
}

// echoed wants reasoning items back with what is encrypted in them.
func (r responsesRequest) echoed(before Exchange) string {
	var answer struct {
		Output []map[string]any `json:"output"`
	}
	if json.Unmarshal(before.Answer, &answer) != nil {
		return ""
	}
	for _, made := range answer.Output {
		if made["type"] == "reasoning" && !slices.ContainsFunc(r.raw(), func(raw json.RawMessage) bool {
			var is map[string]any
			return json.Unmarshal(raw, &is) == nil && is["type"] == "reasoning" && is["encrypted_content"] == made["encrypted_content"]
		}) {
			return "its reasoning item is missing or changed"
		}
	}
	return ""
}

func (responsesRequest) render(ex Exchange, t Turn) []byte {
	output := []any{}
	add := func(kind string, fields map[string]any) {
		fields["type"], fields["id"], fields["status"] = kind, fmt.Sprintf("%s_%d_%d", kind, ex.Turn, len(output)), "completed"
		output = append(output, fields)
	}
	if t.Reasoning != "" || t.Redacted != "" {
		fields := map[string]any{"summary": []any{}, "encrypted_content": cmp.Or(t.Redacted, fmt.Sprintf("sealed-%d-%d", ex.Session, ex.Turn))}
		if t.Reasoning != "" {
			fields["summary"] = []any{map[string]any{"type": "summary_text", "text": t.Reasoning}}
		}
		add("reasoning", fields)
	}
	text := map[string]any{}
	if t.Content != nil {
		text["content"] = *t.Content
	}
	for _, c := range t.ToolCalls {
		if c.As == "text" {
			text["content"] = leaked(text["content"], c)
		}
	}
	if text["content"] != nil {
		add("message", map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text["content"], "annotations": []any{}}}})
	}
	for n, c := range t.ToolCalls {
		if c.As == "text" {
			continue
		}
		call := map[string]any{"name": c.Name, "arguments": c.sent()}
		if id := c.id("script", ex.Turn, n); id != "" {
			call["call_id"] = id
		}
		maps.Copy(call, c.Extra)
		add("function_call", call)
	}
	body := map[string]any{
		"id": fmt.Sprintf("resp_%d_%d", ex.Session, ex.Turn), "object": "response", "created_at": 0, "model": ex.Model, "status": "completed",
		"output": output, "error": nil, "incomplete_details": nil, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "metadata": map[string]any{},
	}
	if t.FinishReason == "length" {
		body["status"], body["incomplete_details"] = "incomplete", map[string]any{"reason": "max_output_tokens"}
	}
	t.tell(body, func(u Usage) map[string]any {
		return map[string]any{
			"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"input_tokens_details": map[string]any{"cached_tokens": u.Cached}, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		}
	})
	return encoded(body)
}

// frames: the response is created, its items come, texts and arguments in
// pieces, and it is completed.
func (responsesRequest) frames(answer []byte, plan Stream) [][]byte {
	var whole map[string]any
	if json.Unmarshal(answer, &whole) != nil {
		return [][]byte{event("error", answer)}
	}
	var out [][]byte
	say := func(name string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = name, len(out)
		out = append(out, event(name, encoded(fields)))
	}
	begun := maps.Clone(whole)
	begun["output"], begun["status"], begun["usage"] = []any{}, "in_progress", nil
	say("response.created", map[string]any{"response": begun})
	items, _ := whole["output"].([]any)
	for i, v := range items {
		made, _ := v.(map[string]any)
		say("response.output_item.added", map[string]any{"output_index": i, "item": made})
		kind, text := "", ""
		switch made["type"] {
		case "message":
			content, _ := made["content"].([]any)
			first, _ := content[0].(map[string]any) // render has made one
			kind = "response.output_text"
			text, _ = first["text"].(string)
		case "function_call":
			kind = "response.function_call_arguments"
			text, _ = made["arguments"].(string)
		}
		for piece := range pieces(text, plan.Piece) {
			say(kind+".delta", map[string]any{"output_index": i, "content_index": 0, "item_id": made["id"], "delta": piece})
		}
		if kind != "" {
			say(kind+".done", map[string]any{"output_index": i, "content_index": 0, "item_id": made["id"], "text": text, "arguments": text})
		}
		say("response.output_item.done", map[string]any{"output_index": i, "item": made})
	}
	if plan.Usage == "absent" {
		delete(whole, "usage")
	}
	if !plan.NoFinish {
		say("response.completed", map[string]any{"response": whole})
	}
	return out
}
