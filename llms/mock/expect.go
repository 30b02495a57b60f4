package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Expect describes what requests must contain. Fields that are not set are not checked. The
// server records an unmet expectation as a problem and still answers the request.
type Expect struct {
	Tools   []string       `yaml:"tools"`   // names of all offered tools; []: no tools
	Present []string       `yaml:"present"` // parameters that must be sent
	Absent  []string       `yaml:"absent"`  // parameters that must not be sent
	Params  map[string]any `yaml:"params"`  // parameters and their values
	// Cache lists all places that have cache_control: "tools", "system" or "message N". N
	// counts from 0; -1 is the last message.
	Cache []string `yaml:"cache"`
	// Echo requires that the request repeats the previous answer with all its fields,
	// including reasoning, signatures, and fields that a vendor adds to calls.
	Echo     bool   `yaml:"echo"`
	System   string `yaml:"system"`   // regular expression that matches the system prompt
	Last     string `yaml:"last"`     // regular expression that matches the last message
	Messages int    `yaml:"messages"` // number of messages; 0: any
}

func (e *Expect) check() error {
	if e == nil {
		return nil
	}
	for name, text := range map[string]string{"system": e.System, "last": e.Last} {
		if _, err := regexp.Compile(text); err != nil {
			return fmt.Errorf("expect.%s: %w", name, err)
		}
	}
	for _, place := range e.Cache {
		var n int
		if _, err := fmt.Sscanf(place, "message %d", &n); place != "tools" && place != "system" && err != nil {
			return fmt.Errorf("expect.cache: unknown place %q: choose tools, system or message N", place)
		}
	}
	if e.Messages < 0 {
		return errors.New("expect.messages cannot be negative")
	}
	return nil
}

// unmet returns the expectations that a request does not meet. It does not check Echo.
func (e *Expect) unmet(body []byte, messages []textMessage) []string {
	if e == nil {
		return nil
	}
	var out []string
	report := func(format string, args ...any) { out = append(out, "expected "+fmt.Sprintf(format, args...)) }
	var params map[string]json.RawMessage
	if json.Unmarshal(body, &params) != nil {
		return nil
	}
	if got := toolNames(params["tools"]); e.Tools != nil && !sameSet(got, e.Tools) {
		report("the tools %q, got %q", e.Tools, got)
	}
	for _, name := range e.Present {
		if _, ok := params[name]; !ok {
			report("parameter %s, which is missing", name)
		}
	}
	for _, name := range e.Absent {
		if v, ok := params[name]; ok {
			report("no parameter %s, got %s", name, clip(string(v)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Params)) {
		if want := encode(e.Params[name]); !sameJSON(want, params[name]) {
			report("parameter %s to be %s, got %s", name, want, clip(string(params[name])))
		}
	}
	if got := cachePlaces(params); e.Cache != nil && !sameSet(got, normalPlaces(e.Cache, params)) {
		report("cache_control at %q, got it at %q", normalPlaces(e.Cache, params), got)
	}
	data := newTemplateData(Exchange{}, messages)
	for name, match := range map[string][2]string{"the system prompt": {e.System, data.System}, "the last message": {e.Last, data.Last}} {
		if match[0] != "" && !regexp.MustCompile(match[0]).MatchString(match[1]) {
			report("%s to match %q, got %q", name, match[0], clip(match[1]))
		}
	}
	if e.Messages > 0 && len(messages) != e.Messages {
		report("%d messages, got %d", e.Messages, len(messages))
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// toolDef is a tool definition, in the form of the chat API or of the Messages API.
type toolDef struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Schema   json.RawMessage `json:"input_schema"`
	Function *struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func readTools(raw json.RawMessage) (tools []toolDef) {
	_ = json.Unmarshal(raw, &tools) // checkTools reports errors
	for i, t := range tools {
		if t.Function != nil {
			tools[i].Name, tools[i].Schema = t.Function.Name, t.Function.Parameters
		}
	}
	return tools
}

func toolNames(raw json.RawMessage) (names []string) {
	for _, t := range readTools(raw) {
		names = append(names, t.Name)
	}
	return names
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkTools returns the faults in tool definitions that every vendor refuses. wrapped says
// that each definition must be inside a field "function", as in the chat API.
func checkTools(raw json.RawMessage, wrapped bool) (out []string) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	tools := readTools(raw)
	if len(tools) == 0 {
		return []string{"tools must be absent or a non-empty list"}
	}
	seen := map[string]bool{}
	for i, t := range tools {
		prefix := fmt.Sprintf("tool %d (%s): ", i, t.Name)
		if wrapped != (t.Function != nil) || wrapped && t.Type != "function" {
			out = append(out, prefix+"not in the form of this API")
			continue
		}
		if !toolName.MatchString(t.Name) || seen[t.Name] {
			out = append(out, prefix+"the name is invalid or used twice")
		}
		seen[t.Name] = true
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if len(t.Schema) == 0 && wrapped {
			continue // no parameters
		}
		if err := json.Unmarshal(t.Schema, &schema); err != nil || schema.Type != "object" {
			out = append(out, prefix+"the schema does not describe an object")
		}
		for _, name := range schema.Required {
			if _, ok := schema.Properties[name]; !ok {
				out = append(out, prefix+fmt.Sprintf("%q is required but is not a property", name))
			}
		}
	}
	return out
}

// cachePlaces returns the places of a request that have cache_control.
func cachePlaces(params map[string]json.RawMessage) []string {
	marked := func(raw json.RawMessage) bool {
		var blocks []map[string]any
		return json.Unmarshal(raw, &blocks) == nil && slices.ContainsFunc(blocks, func(b map[string]any) bool { return b["cache_control"] != nil })
	}
	var out []string
	for _, name := range []string{"tools", "system"} {
		if marked(params[name]) {
			out = append(out, name)
		}
	}
	for i, m := range rawMessages(params) {
		if marked(m.Content) {
			out = append(out, fmt.Sprintf("message %d", i))
		}
	}
	return out
}

type rawMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func rawMessages(params map[string]json.RawMessage) (list []rawMessage) {
	_ = json.Unmarshal(params["messages"], &list) // the API's own check reports mistakes
	return list
}

func normalPlaces(places []string, params map[string]json.RawMessage) []string {
	out := slices.Clone(places)
	count := len(rawMessages(params))
	for i, place := range out {
		var n int
		if _, err := fmt.Sscanf(place, "message %d", &n); err == nil && n < 0 {
			out[i] = fmt.Sprintf("message %d", count+n)
		}
	}
	return out
}

// echoDiff returns the first field in which an echoed chat message differs from the
// answer. It ignores the content, and the arguments of calls, which a client may
// have repaired.
func echoDiff(answer, echo map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		want, got := answer[name], echo[name]
		if name == "tool_calls" {
			want, got = withoutArguments(want), withoutArguments(got)
		}
		if name != "content" && !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("%s was %s and is %s", name, clip(string(encode(want))), clip(string(encode(got))))
		}
	}
	return ""
}

func withoutArguments(calls any) any {
	list, _ := calls.([]any)
	var out []any
	for _, c := range list {
		call, _ := c.(map[string]any)
		fn, _ := call["function"].(map[string]any)
		named := map[string]any{}
		maps.Copy(named, call)
		named["function"] = fn["name"]
		out = append(out, named)
	}
	return out
}

// Difference describes the first message in which two conversations differ. It returns "" if
// they are equal.
func Difference(want, got []json.RawMessage) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("message %d is missing:\n  - %s", i, want[i])
		case i >= len(want):
			return fmt.Sprintf("message %d is surplus:\n  + %s", i, got[i])
		case !sameJSON(want[i], got[i]):
			return fmt.Sprintf("message %d differs:\n%s", i, lineDiff(want[i], got[i]))
		}
	}
	return ""
}

// lineDiff shows an excerpt of each message around the first difference.
func lineDiff(want, got json.RawMessage) string {
	a, b := string(canonical(want)), string(canonical(got))
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-60)
	dots := strings.Repeat("...", min(1, from))
	show := func(s string) string { return dots + strings.ToValidUTF8(s[from:min(len(s), n+200)], "?") }
	return fmt.Sprintf("  - %s\n  + %s", show(a), show(b))
}

// canonical returns a JSON value with sorted keys, or raw if it is invalid.
func canonical(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	return encode(v)
}
