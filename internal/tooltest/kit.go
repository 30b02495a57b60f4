package tooltest

import (
	"testing"

	"github.com/tracesmith/tracesmith/tools"
)

// Settings maps the names of tools to their settings.
type Settings map[string]map[string]any

// Kit builds every registered tool, in the order of the names.
func Kit(t testing.TB, with Settings) []tools.Tool {
	t.Helper()
	var list []tools.Tool
	for _, kind := range tools.Registry.Kinds() {
		tool, err := tools.Registry.Build(kind, with[kind], struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tool)
	}
	return list
}
