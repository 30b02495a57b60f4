// Package plugin is the registry every component kind shares: a Spec per
// component, its config block decoded strictly, and the list of what exists.
// It imports no component.
package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Spec describes one component of kind C that is built with dependencies D.
type Spec[C, D any] struct {
	Kind    string // the name used in configuration
	Summary string // one line for lists
	// Default returns a pointer to a config struct with its defaults; nil: the
	// component takes no config.
	Default func() any
	// New builds the component; cfg is what Default returned, decoded.
	New func(cfg any, deps D) (C, error)
}

// Registry holds the components of one kind. It is filled at start-up and
// read-only afterwards.
type Registry[C, D any] struct {
	What  string // "tool", "agent": used in messages
	specs map[string]Spec[C, D]
}

// Register adds a component; a kind registered twice is a programming error.
func (r *Registry[C, D]) Register(s Spec[C, D]) {
	if r.specs == nil {
		r.specs = map[string]Spec[C, D]{}
	}
	if _, twice := r.specs[s.Kind]; twice {
		panic(fmt.Sprintf("%s %q registered twice", r.What, s.Kind))
	}
	r.specs[s.Kind] = s
}

// Clone returns a registry that can be extended without touching r.
func (r *Registry[C, D]) Clone() *Registry[C, D] {
	c := &Registry[C, D]{What: r.What, specs: map[string]Spec[C, D]{}}
	for k, s := range r.specs {
		c.specs[k] = s
	}
	return c
}

// Kinds lists the names in alphabetical order.
func (r *Registry[C, D]) Kinds() []string {
	var out []string
	for k := range r.specs {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Lookup finds a component's spec.
func (r *Registry[C, D]) Lookup(kind string) (Spec[C, D], bool) {
	s, ok := r.specs[kind]
	return s, ok
}

// Build decodes with into the component's config and constructs it. with may be
// nil. Unknown kinds and unknown fields are errors that name what exists.
func (r *Registry[C, D]) Build(kind string, with map[string]any, deps D) (C, error) {
	var zero C
	s, ok := r.specs[kind]
	if !ok {
		return zero, fmt.Errorf("unknown %s %q: choose one of %s", r.What, kind, strings.Join(r.Kinds(), ", "))
	}
	var cfg any
	if s.Default != nil {
		cfg = s.Default()
	}
	if len(with) > 0 {
		if cfg == nil {
			return zero, fmt.Errorf("%s %q takes no settings", r.What, kind)
		}
		raw, err := json.Marshal(with)
		if err != nil {
			return zero, fmt.Errorf("%s %q: encoding settings: %w", r.What, kind, err)
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(cfg); err != nil {
			return zero, fmt.Errorf("%s %q: %w", r.What, kind, explain(err, cfg))
		}
	}
	c, err := s.New(cfg, deps)
	if err != nil {
		return zero, fmt.Errorf("%s %q: %w", r.What, kind, err)
	}
	return c, nil
}

// explain says in a user's words what is wrong with a component's settings.
func explain(err error, cfg any) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the embedded struct that holds it
		return fmt.Errorf("setting %q must not be a %s", name, wrong.Value)
	}
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !unknown {
		return err
	}
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(cfg).Elem()) {
		if field, _, _ := strings.Cut(f.Tag.Get("json"), ","); field != "" && field != "-" {
			known = append(known, field)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("unknown field %s: it takes no settings", name)
	}
	return fmt.Errorf("unknown field %s: known are %s", name, strings.Join(known, ", "))
}
