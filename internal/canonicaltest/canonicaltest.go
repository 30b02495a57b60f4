// Package canonicaltest applies the rules of package canonical to whole JSON answers, so that
// tests can compare the answers of two sandboxes in all fields.
package canonicaltest

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/agents/canonical"
)

// JSON decodes a JSON value as encoding/json does, rewrites its texts and drops its fields as
// the given rules say. Without rules, it applies all of canonical.Rules.
func JSON(value []byte, rules ...canonical.Rule) (any, error) {
	if len(rules) == 0 {
		rules = canonical.Rules
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("decoding an answer: %w", err)
	}
	dropped := map[string]bool{}
	for _, r := range rules {
		for _, f := range r.Fields {
			dropped[f] = true
		}
	}
	return walk(v, dropped, rules), nil
}

func walk(v any, dropped map[string]bool, rules []canonical.Rule) any {
	switch v := v.(type) {
	case string:
		return canonical.Text(v, rules...)
	case []any:
		for i := range v {
			v[i] = walk(v[i], dropped, rules)
		}
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool { return dropped[name] })
		for name := range v {
			v[name] = walk(v[name], dropped, rules)
		}
	}
	return v
}
