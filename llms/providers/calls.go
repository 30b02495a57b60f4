package providers

// Tool calls as servers send them: ids may be missing or doubled, arguments may
// be no JSON, and what is one call may stand for several.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// cutOff is what is wrong with a call whose arguments were not finished.
const cutOff = "the reply hit the token limit and the call was cut off; send a shorter one"

// hitLimit reads a reason to stop in any server's word.
func hitLimit(finish string) bool {
	return slices.Contains([]string{"length", "max_tokens", "model_length", "model_context_window_exceeded"}, strings.ToLower(finish))
}

// decodeCalls reads the calls in order. A missing id, or one that is taken
// already, becomes call_<turn>_<n>: the turn is counted from the history, so
// the same conversation always gives the same ids.
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
		if inner := unpacked(w); inner != nil {
			for _, call := range inner {
				call.Repaired = true
				out = append(out, call)
			}
			continue
		}
		call := schemas.ToolCall{Name: w.Function.Name}
		_ = json.Unmarshal(w.ID, &call.ID) // what is no text is no id
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

// unpacked are the calls of multi_tool_use.parallel, a tool that models make up
// to call several at once; nil for any other call, and for one that is not whole.
func unpacked(w wireCall) []schemas.ToolCall {
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

// decodeArguments fills Arguments, Raw, Repaired and Invalid. A string holding an
// object is the norm, and an object in its place is taken too. Where that fails
// the text is repaired, and marked; what cannot be repaired must not be executed.
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
		// How several servers say "no arguments"; a tool that needs some says so.
		call.Raw, call.Arguments, call.Repaired = "", json.RawMessage("{}"), true
		return
	}
	args, err := canonicalObject(text)
	if err != nil {
		if mended, ok := repaired(text); ok {
			args, err, call.Repaired = mended, nil, true
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
