package configs

import (
	"reflect"
	"slices"
	"strings"
)

// Keys returns all settings as section.key, sorted. It omits blocks whose keys are
// chosen by the user or a component.
func Keys() []string {
	keys := keysOf(reflect.TypeFor[Config](), "")
	slices.Sort(keys)
	return keys
}

func keysOf(t reflect.Type, path string) []string {
	var out []string
	for f := range t.Fields() {
		name := f.Tag.Get("mapstructure")
		if name == "-" {
			continue
		}
		full := strings.TrimPrefix(path+"."+name, ".")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch inner.Kind() {
		case reflect.Struct:
			out = append(out, keysOf(inner, full)...)
		case reflect.Map, reflect.Interface:
		default:
			out = append(out, full)
		}
	}
	return out
}
