package normalise

import (
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// toolDefinitions redacts the tool definitions that the agent saw, because descriptions from
// MCP servers may contain URLs with passwords. It keeps tool names, because calls use them.
// Rows identify a list of tools by the hash of its redacted form.
func (n *normaliser) toolDefinitions() error {
	var err error
	if n.tools, err = n.toolList(n.ep.Tools); err != nil {
		return err
	}
	for _, set := range n.ep.ToolSets {
		clean, err := n.toolList(set)
		if err != nil {
			return err
		}
		n.toolSets = append(n.toolSets, clean)
	}
	return nil
}

func (n *normaliser) toolList(tools []schemas.ToolSchema) ([]schemas.ToolSchema, error) {
	if tools == nil {
		return nil, nil
	}
	out, unchanged := make([]schemas.ToolSchema, len(tools)), true
	for i, t := range tools {
		out[i] = schemas.ToolSchema{Name: t.Name, Description: n.exact(t.Description), Parameters: t.Parameters}
		unchanged = unchanged && out[i].Description == t.Description
		if len(t.Parameters) == 0 {
			continue
		}
		parameters, err := n.json(t.Parameters)
		if err != nil {
			return nil, fmt.Errorf("parameters of tool %s: %w", t.Name, err)
		}
		unchanged = unchanged && parameters == string(t.Parameters)
		out[i].Parameters = []byte(parameters)
	}
	shown := schemas.Hash(tools)
	if n.redactedSets[shown] = shown; !unchanged {
		n.redactedSets[shown] = schemas.Hash(out)
	}
	return out, nil
}

// toolSet returns the hash of the redacted form of the list of tools whose hash is shown.
func (n *normaliser) toolSet(shown string) string {
	if redacted, ok := n.redactedSets[shown]; ok {
		return redacted
	}
	return shown
}
