package configs

import (
	"encoding/json"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Tool is one item of agent.tools: a name, or a mapping from one name to the tool's
// settings, which the tool itself decodes.
type Tool struct {
	Name string
	With Block
}

// toolForm describes the valid forms of an item of agent.tools, for messages.
const toolForm = "a tool's name, or one name with its settings, as in {bash: {timeout: 120}}"

// Tools returns tools without settings.
func Tools(names ...string) []Tool {
	list := make([]Tool, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

// ParseTools parses a list of tools as it is written between the brackets of
// agent.tools: names separated by commas, each optionally with settings.
func ParseTools(text string) ([]Tool, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte("["+text+"]"), &node); err != nil || len(node.Content) != 1 || node.Content[0].Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%q is not a list of tools: write bash,view or 'bash,{submit: {eval_on_submit: true}}'", text)
	}
	c := checker{source: Source{Name: text, inline: true}}
	list := []Tool{}
	for _, item := range node.Content[0].Content {
		c.checkTool(item, "an item")
		if len(c.problems) > 0 {
			return nil, c.problems[0]
		}
		var v any
		if err := item.Decode(&v); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		var t Tool
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// MarshalJSON writes the short form if there are no settings.
func (t Tool) MarshalJSON() ([]byte, error) {
	if len(t.With) == 0 {
		return json.Marshal(t.Name)
	}
	return json.Marshal(map[string]Block{t.Name: t.With})
}

// UnmarshalJSON reads both forms.
func (t *Tool) UnmarshalJSON(data []byte) error {
	*t = Tool{}
	if json.Unmarshal(data, &t.Name) == nil && t.Name != "" {
		return nil
	}
	var m map[string]Block
	if err := json.Unmarshal(data, &m); err != nil || len(m) != 1 {
		return fmt.Errorf("an item must be %s, not %.80s", toolForm, data)
	}
	for name, with := range m {
		t.Name, t.With = name, with
	}
	return nil
}

// checkTool checks one item of agent.tools.
func (c *checker) checkTool(n *yaml.Node, path string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value != "":
	case n.Kind == yaml.MappingNode && len(n.Content) == 2:
		if with := n.Content[1]; with.Kind != yaml.MappingNode && with.Kind != yaml.AliasNode && with.Tag != "!!null" {
			c.report(with, "%s: %s must have a block of settings, not %q", path, n.Content[0].Value, with.Value)
		}
	default:
		c.report(n, "%s must be %s", path, toolForm)
	}
}

// toolsHook decodes the JSON text of a raw path to a list of tools.
func toolsHook(_, to reflect.Type, data any) (any, error) {
	text, isText := data.(string)
	if to != reflect.TypeFor[[]Tool]() || !isText {
		return data, nil
	}
	var list []Tool
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("a list of tools is expected: %w", err)
	}
	return list, nil
}
