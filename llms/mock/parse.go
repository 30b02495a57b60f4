package mock

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// ScriptError is a mistake in a script.
type ScriptError struct {
	Line    int // from 1; 0: unknown
	Message string
}

func (e *ScriptError) Error() string {
	if e.Line == 0 {
		return "model script: " + e.Message
	}
	return fmt.Sprintf("model script, line %d: %s", e.Line, e.Message)
}

// Parse reads a script from YAML and refuses unknown fields. Its errors are
// *ScriptError.
func Parse(text []byte) (Script, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return Script{}, yamlError(err)
	}
	if len(root.Content) == 0 {
		return Script{}, &ScriptError{Message: "it is empty: write sessions with turns"}
	}
	var s Script
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return Script{}, yamlError(err)
	}
	if path, err := s.check(); err != nil {
		return Script{}, &ScriptError{Line: lineOf(root.Content[0], path), Message: err.Error()}
	}
	return s, nil
}

var (
	yamlLine     = regexp.MustCompile(`line (\d+): `)
	unknownField = regexp.MustCompile(`field (\S+) not found in type mock\.(\w+)`)
	wrongType    = regexp.MustCompile("cannot unmarshal !!(\\w+) (?:`(.*)` )?into (\\S+)")
)

// typeNames are readable names of the types of YAML and Go.
var typeNames = map[string]string{"str": "text", "seq": "a list", "map": "a mapping", "int": "a whole number", "float": "a number", "bool": "true or false"}

// yamlError returns the first error of the decoder in readable words, with its line.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	out := &ScriptError{Message: text}
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		out.Line, _ = strconv.Atoi(text[m[2]:m[3]])
		out.Message = text[m[1]:]
	}
	if m := unknownField.FindStringSubmatch(text); m != nil {
		out.Message = fmt.Sprintf("unknown field %q", m[1])
		if near := nearest.Name(m[1], fieldsOf(m[2]), 3); near != "" {
			out.Message += fmt.Sprintf(": did you mean %q?", near)
		} else {
			out.Message += ": known are " + strings.Join(fieldsOf(m[2]), ", ")
		}
	} else if m := wrongType.FindStringSubmatch(text); m != nil {
		got := typeNames[m[1]]
		if m[2] != "" {
			got = strconv.Quote(m[2])
		}
		out.Message = fmt.Sprintf("expected %s, got %s", typeName(m[3]), got)
	}
	return out
}

// typeName returns the readable name of a Go type.
func typeName(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"):
		return typeNames["seq"]
	case strings.HasPrefix(name, "int"):
		return typeNames["int"]
	case name == "time.Duration":
		return "a duration such as 500ms"
	case strings.HasPrefix(name, "float"):
		return typeNames["float"]
	case name == "string":
		return typeNames["str"]
	case name == "bool":
		return typeNames["bool"]
	}
	return typeNames["map"]
}

// scriptTypes are the types of a script that have fields.
var scriptTypes = []reflect.Type{
	reflect.TypeFor[Script](), reflect.TypeFor[Session](), reflect.TypeFor[Turn](), reflect.TypeFor[Call](),
	reflect.TypeFor[Usage](), reflect.TypeFor[Fault](), reflect.TypeFor[Expect](), reflect.TypeFor[Limits](),
}

// fieldsOf returns the YAML fields of a type of a script.
func fieldsOf(part string) (names []string) {
	for _, t := range scriptTypes {
		if t.Name() != part {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// lineOf returns the line to which a path of keys and indices leads, or that of the
// last step that exists.
func lineOf(n *yaml.Node, path []any) int {
	line := n.Line
	for _, step := range path {
		var next *yaml.Node
		switch step := step.(type) {
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
			}
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					next = n.Content[i+1]
				}
			}
		}
		if next == nil {
			return line
		}
		n, line = next, next.Line
	}
	return line
}
