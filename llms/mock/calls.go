package mock

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Call is one tool call. Exactly one of Arguments (sent as a JSON string, the
// norm), Raw (sent as a string as it stands) and Object (sent as an object in
// the string's place) is used.
type Call struct {
	ID        *string        `yaml:"id"` // nil: one is made up; "" is sent as missing
	Name      string         `yaml:"name"`
	Arguments map[string]any `yaml:"arguments"`
	Raw       *string        `yaml:"raw"`
	Object    map[string]any `yaml:"object"`
	// As is another form: double (the string's content is itself a JSON string),
	// text (no call at all, but its text in the content).
	As string `yaml:"as"`
	// Size gives the arguments a further one, filler, that makes them this many
	// bytes at least.
	Size  int            `yaml:"size"`
	Extra map[string]any `yaml:"extra"` // further fields of the call
}

// maxSize bounds Call.Size.
const maxSize = 32 << 20

func (c Call) check() error {
	ways := 0
	for _, set := range []bool{c.Arguments != nil, c.Raw != nil, c.Object != nil} {
		if set {
			ways++
		}
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("a tool call has no name")
	case ways > 1:
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
	if short := c.Size - len(encoded(args)) - len(`,"filler":""`); c.Size > 0 {
		args["filler"] = strings.Repeat("x", max(0, short))
	}
	return args
}

// sent is what stands in the place of the chat API's arguments.
func (c Call) sent() any {
	if c.Object != nil {
		return c.Object
	}
	text := string(encoded(c.arguments()))
	if c.Raw != nil {
		text = *c.Raw
	}
	if c.As == "double" {
		text = string(encoded(text))
	}
	return text
}

// object is the Messages API's input: what is no object stands there as a text.
func (c Call) object() any {
	switch {
	case c.Object != nil:
		return c.Object
	case c.As == "double":
		return string(encoded(c.arguments()))
	case c.Raw == nil:
		return c.arguments()
	case json.Valid([]byte(*c.Raw)):
		return json.RawMessage(*c.Raw)
	}
	return *c.Raw
}

// leaked is the text of a message with a call in it that its server's parser
// has given up on.
func leaked(content any, c Call) string {
	text, _ := content.(string)
	arguments := json.RawMessage(encoded(c.arguments()))
	if c.Raw != nil {
		arguments = encoded(*c.Raw)
	}
	return text + "<tool_call>\n" + string(encoded(map[string]any{"name": c.Name, "arguments": arguments})) + "\n</tool_call>"
}
