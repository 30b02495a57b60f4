package providers

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// callMarkers matches the markers that models put around calls. A server that does not support
// the format of its model leaves them in the text.
var callMarkers = regexp.MustCompile(`<tool_call>|<\|tool_call|<function_call>|<function=\w|<invoke name=|\[TOOL_CALLS\]|<\|python_tag\|>|<｜tool▁call|<\|channel\|>commentary to=functions\.`)

// hasCallAsText reports whether the text of a reply contains a call: with the markers of a
// model's own format, or as JSON that names one of the tools.
func hasCallAsText(text string, tools []schemas.ToolSchema) bool {
	if len(tools) == 0 || text == "" {
		return false
	}
	if callMarkers.MatchString(text) {
		return true
	}
	for i, tries := 0, 0; i < len(text) && tries < 100; tries++ { // each JSON object that begins a line
		start := strings.IndexByte(text[i:], '{')
		if start < 0 {
			return false
		}
		start += i
		i = start + 1
		if before := strings.TrimRight(text[:start], " \t["); before != "" && !strings.HasSuffix(before, "\n") {
			continue
		}
		var call struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
		}
		dec := json.NewDecoder(strings.NewReader(text[start:]))
		if dec.Decode(&call) != nil {
			continue
		}
		i = start + int(dec.InputOffset())
		if (present(call.Arguments) || present(call.Parameters)) &&
			slices.ContainsFunc(tools, func(t schemas.ToolSchema) bool { return t.Name == call.Name }) {
			return true
		}
	}
	return false
}
