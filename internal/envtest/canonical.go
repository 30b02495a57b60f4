package envtest

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/agents/canonical"
)

// Canonical decodes an answer of an environment, rewrites its texts and drops its fields as the
// given rules say. Without rules, it applies all of canonical.Rules. Answers of two sandboxes
// that are equal in all fields give equal values.
func Canonical(value []byte, rules ...canonical.Rule) (any, error) {
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
	return canonicalValue(v, dropped, rules), nil
}

func canonicalValue(v any, dropped map[string]bool, rules []canonical.Rule) any {
	switch v := v.(type) {
	case string:
		return canonical.Text(v, rules...)
	case []any:
		for i := range v {
			v[i] = canonicalValue(v[i], dropped, rules)
		}
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool { return dropped[name] })
		for name := range v {
			v[name] = canonicalValue(v[name], dropped, rules)
		}
	}
	return v
}
