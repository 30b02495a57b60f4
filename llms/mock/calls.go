package mock

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Call is one tool call. At most one of Arguments (sent as a JSON string, as
// usual), Raw (sent as a string unchanged) and Object (sent as an object instead
// of a string) is set.
type Call struct {
	ID        *string        `yaml:"id"` // nil: the server chooses one; "": the call has none
	Name      string         `yaml:"name"`
	Arguments map[string]any `yaml:"arguments"`
	Raw       *string        `yaml:"raw"`
	Object    map[string]any `yaml:"object"`
	// As selects another form: double (the JSON string contains a JSON string) or text (the
	// content contains the call as text).
	As string `yaml:"as"`
	// Size adds an argument named filler, so that the arguments have at least this many bytes.
	Size  int            `yaml:"size"`
	Extra map[string]any `yaml:"extra"` // further fields of the call
}

// maxSize bounds Call.Size.
const maxSize = 32 << 20

func (c Call) check() error {
	forms := 0
	for _, set := range []bool{c.Arguments != nil, c.Raw != nil, c.Object != nil} {
		if set {
			forms++
		}
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("a tool call has no name")
	case forms > 1:
		return fmt.Errorf("call %s: use one of arguments, raw and object", c.Name)
	case c.As != "" && c.As != "double" && c.As != "text":
		return fmt.Errorf("call %s: unknown form %q: choose double or text", c.Name, c.As)
	case c.Size < 0 || c.Size > maxSize:
		return fmt.Errorf("call %s: size is %d: choose at most %d", c.Name, c.Size, maxSize)
	}
	return nil
}

func (c Call) id(prefix string, turn, n int) string {
	if c.ID != nil {
		return *c.ID
	}
	return fmt.Sprintf("%s_%d_%d", prefix, turn, n)
}

func (c Call) arguments() map[string]any {
	args := map[string]any{}
	maps.Copy(args, c.Arguments)
	if short := c.Size - len(encode(args)) - len(`,"filler":""`); c.Size > 0 {
		args["filler"] = strings.Repeat("x", max(0, short))
	}
	return args
}

// chatArguments is the value of arguments in the chat API.
func (c Call) chatArguments() any {
	if c.Object != nil {
		return c.Object
	}
	text := string(encode(c.arguments()))
	if c.Raw != nil {
		text = *c.Raw
	}
	if c.As == "double" {
		text = string(encode(text))
	}
	return text
}

// messagesInput is the value of input in the Messages API. Raw text that is not valid JSON is
// sent as a string.
func (c Call) messagesInput() any {
	switch {
	case c.Object != nil:
		return c.Object
	case c.As == "double":
		return string(encode(c.arguments()))
	case c.Raw == nil:
		return c.arguments()
	case json.Valid([]byte(*c.Raw)):
		return json.RawMessage(*c.Raw)
	}
	return *c.Raw
}

// callAsText returns the content with a call appended as text, as servers send it if their
// parser does not recognize the call.
func callAsText(content any, c Call) string {
	text, _ := content.(string)
	arguments := json.RawMessage(encode(c.arguments()))
	if c.Raw != nil {
		arguments = encode(*c.Raw)
	}
	return text + "<tool_call>\n" + string(encode(map[string]any{"name": c.Name, "arguments": arguments})) + "\n</tool_call>"
}
