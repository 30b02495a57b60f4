package providers

// Decoding of tool calls: ids may be missing or duplicate, arguments may be invalid JSON, and
// one call may contain several.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// cutOff tells the model that the token limit cut off its call.
const cutOff = "the reply hit the token limit and the call was cut off; send a shorter one"

// hitLimit reports whether a finish reason means that the token limit was reached.
func hitLimit(finish string) bool {
	return slices.Contains([]string{"length", "max_tokens", "model_length", "model_context_window_exceeded"}, strings.ToLower(finish))
}

// decodeCalls decodes the calls in order. A missing or duplicate id becomes
// call_<turn>_<n>. The number of the turn comes from the history, so the same conversation
// always gets the same ids.
func decodeCalls(calls []wireCall, truncated bool, history []llms.Message) []schemas.ToolCall {
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
	for _, w := range calls {
		if inner := parallelCalls(w); inner != nil {
			for _, call := range inner {
				call.Repaired = true
				out = append(out, call)
			}
			continue
		}
		call := schemas.ToolCall{Name: w.Function.Name}
		_ = json.Unmarshal(w.ID, &call.ID) // an id that is not a string counts as missing
		decodeArguments(&call, w.Function.Arguments)
		if call.Invalid != "" && truncated {
			call.Invalid, call.Truncated = cutOff, true
		}
		out = append(out, call)
	}
	for n := range out {
		id := out[n].ID
		if id == "" || taken[id] {
			id = fmt.Sprintf("call_%d_%d", turn, n)
			for taken[id] {
				id += "_"
			}
		}
		taken[id], out[n].ID = true, id
	}
	return out
}

// parallelCalls returns the calls in a call of multi_tool_use.parallel, a tool that models
// make up to call several tools at once. It returns nil for other and incomplete calls.
func parallelCalls(w wireCall) []schemas.ToolCall {
	if w.Function.Name != "multi_tool_use.parallel" {
		return nil
	}
	var outer schemas.ToolCall
	decodeArguments(&outer, w.Function.Arguments)
	var body struct {
		Uses []struct {
			Name       string          `json:"recipient_name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"tool_uses"`
	}
	if outer.Invalid != "" || json.Unmarshal(outer.Arguments, &body) != nil || len(body.Uses) == 0 {
		return nil
	}
	var out []schemas.ToolCall
	for _, use := range body.Uses {
		call := schemas.ToolCall{Name: strings.TrimPrefix(use.Name, "functions.")}
		decodeArguments(&call, use.Parameters)
		out = append(out, call)
	}
	return out
}

// decodeArguments sets Arguments, Raw, Repaired and Invalid. raw is usually a string that
// contains an object, but may be an object itself. An invalid text is repaired if possible;
// otherwise Invalid is set, and the call must not be executed.
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
	if strings.TrimSpace(text) == "" {
		// Several servers express "no arguments" like this.
		call.Raw, call.Arguments, call.Repaired = "", json.RawMessage("{}"), true
		return
	}
	args, err := canonicalObject(text)
	if err != nil {
		if fixed, ok := repair(text); ok {
			args, err, call.Repaired = fixed, nil, true
		}
	}
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
