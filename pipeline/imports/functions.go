package imports

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// functionName and parameterName match the opening tags of a call in the text of a reply.
// Source: fn_call_converter.py of OpenHands. SWE-agent (xml_function_calling) and Qwen3-Coder write
// the same form.
var (
	functionName  = regexp.MustCompile(`<function=([^<>\s]+)>`)
	parameterName = regexp.MustCompile(`<parameter=([^<>\s]+)>`)
)

const (
	functionEnd  = "</function>"
	parameterEnd = "</parameter>"
	// toolCallTag surrounds each call in replies of models that may write several of them.
	toolCallTag = "<tool_call>"
)

// textCall is a call in the text of a reply.
type textCall struct {
	name      string
	arguments json.RawMessage
}

// functionsIn returns the calls in the text of a reply: the first one, because the harnesses run no
// other, or all of them if each is in a toolCallTag. tools determines the types of arguments. The
// last call may lack its closing tag, which is the stop word of some models.
func functionsIn(text string, tools []schemas.ToolSchema) []textCall {
	var out []textCall
	for {
		tag := functionName.FindStringSubmatchIndex(text)
		if tag == nil {
			return out
		}
		name, body := text[tag[2]:tag[3]], text[tag[1]:]
		body, text, _ = strings.Cut(body, functionEnd)
		out = append(out, textCall{name, parametersIn(body, typesOf(name, tools))})
		if !strings.Contains(text, toolCallTag) {
			return out
		}
	}
}

// parametersIn returns the arguments in the body of a call as a JSON object. A value ends at its
// closing tag, or else at the next parameter.
func parametersIn(body string, types map[string]string) json.RawMessage {
	args := map[string]any{}
	for {
		tag := parameterName.FindStringSubmatchIndex(body)
		if tag == nil {
			break
		}
		name, rest := body[tag[2]:tag[3]], body[tag[1]:]
		value, after, closed := strings.Cut(rest, parameterEnd)
		if !closed {
			if next := parameterName.FindStringIndex(rest); next != nil {
				value, after = rest[:next[0]], rest[next[0]:]
			}
		}
		args[name] = typedValue(strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n"), types[name])
		body = after
	}
	raw, err := json.Marshal(args)
	if err != nil { // strings and valid JSON always encode
		return nil
	}
	return raw
}

// typedValue returns a value as JSON if the tool declares a type other than string.
func typedValue(text, declared string) any {
	switch declared {
	case "", "string":
		return text
	}
	if value := strings.TrimSpace(text); json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	return text
}

// typesOf returns the declared types of a tool's parameters.
func typesOf(name string, tools []schemas.ToolSchema) map[string]string {
	out := map[string]string{}
	for _, t := range tools {
		var schema struct {
			Properties map[string]lenient[struct {
				Type lenient[string] `json:"type"`
			}] `json:"properties"`
		}
		if t.Name != name || json.Unmarshal(t.Parameters, &schema) != nil {
			continue
		}
		for parameter, p := range schema.Properties {
			out[parameter] = p.value.Type.value
		}
	}
	return out
}
