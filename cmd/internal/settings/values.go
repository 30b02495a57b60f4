package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
)

// OriginDefault is the Origin of values that nothing has set.
const OriginDefault = "default"

// Value is the effective value of a setting.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`  // nil if it is unset
	Origin string `json:"origin"` // file and line, variable, -p or OriginDefault
}

// Text returns the value as YAML in one line; "" if it is unset.
func (v Value) Text() string {
	if v.Value == nil {
		return ""
	}
	if s, ok := v.Value.(string); ok {
		return s
	}
	if list, ok := v.Value.([]any); ok {
		var items []string
		for _, item := range list {
			items = append(items, Value{Value: item}.Text())
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	raw, err := json.Marshal(v.Value)
	if err != nil {
		return fmt.Sprint(v.Value)
	}
	return string(raw)
}

// Effective returns the values of all settings of cfg, including those of the chosen components, in
// the order of the reference. Secrets are hidden. It returns an error for wrong settings of a component.
func Effective(cfg configs.Config) ([]Value, error) {
	list := valuesOf(configTag, reflect.ValueOf(cfg), "")
	for _, c := range []struct {
		block  string
		config func() (any, error)
	}{
		{"tasks.with", func() (any, error) { return env.Sources.Config(cfg.Tasks.Source, cfg.Tasks.With) }},
		{"sandbox.with", func() (any, error) {
			if cfg.Sandbox.Kind == "" {
				return nil, nil
			}
			return env.Drivers.Config(cfg.Sandbox.Kind, cfg.Sandbox.With)
		}},
		{"agent.with", func() (any, error) { return agents.Registry.Config(cfg.Agent.Kind, cfg.Agent.With) }},
		{"llm.with", func() (any, error) { return llms.Providers.Config(cfg.LLM.Provider, cfg.LLM.With) }},
	} {
		component, err := c.config()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.block, err)
		}
		var values []Value
		if component != nil {
			values = valuesOf(componentTag, reflect.ValueOf(component).Elem(), c.block)
		}
		at := slices.IndexFunc(list, func(v Value) bool { return v.Key == c.block })
		list = slices.Replace(list, at, at+1, values...)
	}
	for i, v := range list {
		list[i].Origin = origin(cfg, v.Key)
		list[i].Value = hide(v.Key, v.Value)
	}
	return list, nil
}

// origin returns where a setting, or a part of it, was written.
func origin(cfg configs.Config, key string) string {
	if place := cfg.ExactPlace(key); place != "" {
		return place
	}
	return OriginDefault
}

// valuesOf returns the values of the settings of a struct.
func valuesOf(tag string, v reflect.Value, path string) (list []Value) {
	for f, value := range v.Fields() {
		name := keyOf(tag, f)
		key := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case filledByLLM(f) || name == "" && !f.Anonymous:
		case f.Anonymous:
			list = append(list, valuesOf(tag, value, path)...)
		case value.Kind() == reflect.Struct && !decodesItself(value.Type()):
			list = append(list, valuesOf(tag, value, key)...)
		case value.Kind() == reflect.Map && value.Type().Elem().Kind() == reflect.Struct:
			for _, k := range slices.Sorted(maps.Keys(mapOf(value))) {
				list = append(list, valuesOf(tag, mapOf(value)[k], key+"."+k)...)
			}
		default:
			list = append(list, Value{Key: key, Value: normalized(plainValue(value))})
		}
	}
	return list
}

// mapOf returns the entries of a map by their keys, which are texts.
func mapOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for k, e := range v.Seq2() {
		out[k.String()] = e
	}
	return out
}

// normalized returns a value as JSON represents it; nil for empty texts and lists.
func normalized(v any) any {
	raw, err := json.Marshal(v)
	var out any
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return fmt.Sprint(v)
	}
	switch x := out.(type) {
	case string:
		if x == "" {
			return nil
		}
	case []any:
		if len(x) == 0 {
			return nil
		}
	case map[string]any:
		if len(x) == 0 {
			return nil
		}
	}
	return out
}

// secretKey matches the last part of the keys of settings that may hold a secret.
var secretKey = regexp.MustCompile(`(?i)(^|[._-])(secret|password|passwd|token|api_?key|authorization|credentials?)s?$`)

const hidden = "[hidden]"

// hide returns a value without secrets: a text whose key says that it is one, unless it only refers to
// it, and the password in an address.
func hide(key string, v any) any {
	switch x := v.(type) {
	case string:
		if secretKey.MatchString(key) && !llms.IsSecretRef(x) {
			return hidden
		}
		var parts []string
		for part := range strings.SplitSeq(x, ",") { // nats.url has several addresses
			parts = append(parts, withoutPassword(part))
		}
		return strings.Join(parts, ",")
	case []any:
		for i := range x {
			x[i] = hide(key, x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = hide(key+"."+k, x[k])
		}
	}
	return v
}

// withoutPassword hides the user and the password of an address.
func withoutPassword(text string) string {
	if u, err := url.Parse(strings.TrimSpace(text)); err == nil && u.Host != "" && u.User != nil {
		u.User = url.User("hidden")
		return u.String()
	}
	return text
}
