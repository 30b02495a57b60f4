package redact

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Found is the error of an object that holds a secret where none may be any
// more: the object is held back. It names place and type, never the value.
type Found struct {
	Object string // what is held back: an episode, a file
	Place  string // column or field, such as steps[3].observation
	Kind   string // type of the secret, as in placeholders
}

func (f *Found) Error() string {
	return fmt.Sprintf("%s is held back: %s still holds a secret (%s)", f.Object, f.Place, f.Kind)
}

// Checker looks for secrets in what is about to leave. Safe for concurrent use.
type Checker struct{ known []string }

// NewChecker makes one that knows some exact values beside the patterns.
func NewChecker(known []string) *Checker { return &Checker{slices.Clone(known)} }

// Check looks at every text in v, which may be made of structs, pointers, lists,
// maps and bytes. The first secret is a *Found.
func (c *Checker) Check(object string, v any) error {
	w := &walker{red: New(c.known), object: object}
	return w.walk(reflect.ValueOf(v), "")
}

type walker struct {
	red    *Redactor
	object string
}

func (w *walker) walk(v reflect.Value, place string) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return w.walk(v.Elem(), place)
	case reflect.String:
		return w.text(v.String(), place)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return w.text(string(v.Bytes()), place)
		}
		for i := range v.Len() {
			if err := w.walk(v.Index(i), fmt.Sprintf("%s[%d]", place, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			for _, part := range []reflect.Value{it.Key(), it.Value()} {
				if err := w.walk(part, place); err != nil {
					return err
				}
			}
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				continue
			}
			if err := w.walk(v.Field(i), strings.TrimPrefix(place+"."+nameOf(t.Field(i)), ".")); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameOf is what a field is called where it is written down.
func nameOf(f reflect.StructField) string {
	for _, tag := range []string{"col", "json"} {
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
			return name
		}
	}
	return f.Name
}

func (w *walker) text(s, place string) error {
	w.red.Text(s)
	if w.red.Take() == 0 {
		return nil
	}
	kinds := w.red.Counts()
	for kind := range kinds {
		if kind != "known" || len(kinds) == 1 {
			return &Found{Object: w.object, Place: place, Kind: kind}
		}
	}
	return nil
}
