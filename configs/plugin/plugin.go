// Package plugin is the registry for components of all kinds: one Spec per component,
// strict decoding of its settings, and the list of registered components.
package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// Spec describes one component of type C that is built with dependencies D.
type Spec[C, D any] struct {
	Kind string // name of the component in configurations
	// Aliases are other names that a configuration may use. Records always contain
	// Kind.
	Aliases []string
	Summary string // one line for lists
	// Default returns a pointer to the component's settings with their defaults; nil if
	// the component has no settings.
	Default func() any
	// New builds the component; cfg is the result of Default with the user's settings decoded into it.
	New func(cfg any, deps D) (C, error)
}

// Registry holds the components of one type. It is filled at startup and read-only
// afterwards.
type Registry[C, D any] struct {
	What    string // "tool", "agent": used in messages
	specs   map[string]Spec[C, D]
	aliases map[string]string // to kinds
}

// Register adds a component. It panics if a name is already registered.
func (r *Registry[C, D]) Register(s Spec[C, D]) {
	if r.specs == nil {
		r.specs, r.aliases = map[string]Spec[C, D]{}, map[string]string{}
	}
	for _, name := range append([]string{s.Kind}, s.Aliases...) {
		if _, exists := r.Lookup(name); exists {
			panic(fmt.Sprintf("%s %q registered twice", r.What, name))
		}
	}
	r.specs[s.Kind] = s
	for _, name := range s.Aliases {
		r.aliases[name] = s.Kind
	}
}

// Kinds returns the names of all components in alphabetical order, without aliases.
func (r *Registry[C, D]) Kinds() []string {
	return slices.Sorted(maps.Keys(r.specs))
}

// Lookup returns the spec of a component by its kind or an alias.
func (r *Registry[C, D]) Lookup(name string) (Spec[C, D], bool) {
	if kind, ok := r.aliases[name]; ok {
		name = kind
	}
	s, ok := r.specs[name]
	return s, ok
}

// Config returns the component's default settings with the values of with, which may be
// nil, decoded into them; nil for a component without settings. For unknown kinds and
// settings, the error lists those that exist.
func (r *Registry[C, D]) Config(kind string, with map[string]any) (any, error) {
	s, ok := r.Lookup(kind)
	if !ok {
		return nil, fmt.Errorf("unknown %s %q: choose one of %s", r.What, kind, strings.Join(r.Kinds(), ", "))
	}
	var cfg any
	if s.Default != nil {
		cfg = s.Default()
	}
	if len(with) == 0 {
		return cfg, nil
	}
	if cfg == nil {
		return nil, fmt.Errorf("%s %q takes no settings", r.What, kind)
	}
	raw, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("%s %q: encoding settings: %w", r.What, kind, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(cfg); err != nil {
		return nil, fmt.Errorf("%s %q: %w", r.What, kind, explain(err, with, cfg))
	}
	return cfg, nil
}

// Build builds a component with the settings that Config returns.
func (r *Registry[C, D]) Build(kind string, with map[string]any, deps D) (C, error) {
	var zero C
	cfg, err := r.Config(kind, with)
	if err != nil {
		return zero, err
	}
	s, _ := r.Lookup(kind)
	c, err := s.New(cfg, deps)
	if err != nil {
		return zero, fmt.Errorf("%s %q: %w", r.What, kind, err)
	}
	return c, nil
}

// FieldError is an unknown setting of a component, or one with a value of the wrong type.
type FieldError struct {
	Path    string // within the component's settings
	Message string
}

func (e *FieldError) Error() string { return e.Message }

// explain translates a decoding error into terms of the component's settings.
func explain(err error, with map[string]any, cfg any) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the name of an embedded struct
		return &FieldError{name, fmt.Sprintf("setting %q must not be a %s", name, wrong.Value)}
	}
	if !strings.HasPrefix(err.Error(), "json: unknown field ") {
		return err
	}
	path, known := findUnknown(with, reflect.TypeOf(cfg))
	if path == "" {
		return err
	}
	if len(known) == 0 {
		return &FieldError{path, fmt.Sprintf("unknown field %q: it takes no settings", path)}
	}
	hint := ""
	if name := nearest.Name(path[strings.LastIndexByte(path, '.')+1:], known, 2); name != "" {
		hint = fmt.Sprintf("did you mean %q? ", name)
	}
	return &FieldError{path, fmt.Sprintf("unknown field %q: %sknown are %s", path, hint, strings.Join(known, ", "))}
}

// findUnknown returns the path of the first setting, in alphabetical order, for which t has
// no field, and the names of the fields that exist at that place. The path is "" if all
// settings are known.
func findUnknown(with map[string]any, t reflect.Type) (path string, known []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return "", nil
	}
	types := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known = append(known, name)
			types[strings.ToLower(name)] = f.Type
		}
	}
	for _, name := range slices.Sorted(maps.Keys(with)) {
		inner, ok := types[strings.ToLower(name)]
		if !ok {
			return name, known
		}
		if settings, nested := with[name].(map[string]any); nested {
			if path, known := findUnknown(settings, inner); path != "" {
				return name + "." + path, known
			}
		}
	}
	return "", nil
}
