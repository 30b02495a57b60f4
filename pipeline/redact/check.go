package redact

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Found is the error for an object that contains a possible secret and is therefore withheld. It
// names the place and the type of the secret, never its value.
type Found struct {
	Object string // the withheld object: an episode, a file
	Place  string // column or field, such as steps[3].observation
	Kind   string // type of the secret, as in placeholders
}

func (f *Found) Error() string {
	return fmt.Sprintf("%s is held back: %s still holds a secret (%s)", f.Object, f.Place, f.Kind)
}

// Checker looks for secrets in objects before they are staged or published. It is safe for concurrent use.
type Checker struct{ known *Known }

// NewChecker returns a Checker that also looks for known values; known may be nil.
func NewChecker(known *Known) *Checker { return &Checker{known} }

// Check searches every text in v, which may consist of structs, pointers, lists, maps
// and bytes. It returns the first secret as a *Found.
func (c *Checker) Check(object string, v any) error { return c.CheckAfter(New(nil), object, v) }

// CheckAfter is like Check, but skips texts in which r found no secret. r must know all values
// that the checker knows.
func (c *Checker) CheckAfter(r *Redactor, object string, v any) error {
	w := &walker{red: New(c.known), clear: r.clear, seen: map[string]bool{}}
	if found := w.walk(reflect.ValueOf(v)); found != nil {
		found.Object, found.Place = object, strings.TrimPrefix(found.Place, ".")
		return found
	}
	return nil
}

type walker struct {
	red   *Redactor
	clear map[string]bool // texts that need not be searched
	seen  map[string]bool // texts that were searched and contain no secret; many repeat in every row
}

// numericColumns holds the columns of numbers in base64. They contain no text, but about one value
// in 80,000 looks like a key by chance.
var numericColumns = map[string]bool{"minhash_b64": true}

// walk returns the first secret in v, with its place in v. It builds the place on the
// way back, because most texts contain no secret.
func (w *walker) walk(v reflect.Value) *Found {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return w.walk(v.Elem())
	case reflect.String:
		return w.text(v.String())
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return w.text(string(v.Bytes()))
		}
		for i := range v.Len() {
			if found := w.walk(v.Index(i)); found != nil {
				return found.in(fmt.Sprintf("[%d]", i))
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			for _, part := range []reflect.Value{it.Key(), it.Value()} {
				if found := w.walk(part); found != nil {
					return found
				}
			}
		}
	case reflect.Struct:
		for _, i := range textFieldsOf(v.Type()) {
			if found := w.walk(v.Field(i)); found != nil {
				return found.in("." + nameOf(v.Type().Field(i)))
			}
		}
	}
	return nil
}

var textFields sync.Map // reflect.Type -> []int

// textFieldsOf returns the indexes of the fields of a struct that may contain text.
func textFieldsOf(t reflect.Type) []int {
	if known, ok := textFields.Load(t); ok {
		return known.([]int)
	}
	var out []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && mayContainText(f.Type) && !numericColumns[nameOf(f)] {
			out = append(out, i)
		}
	}
	textFields.Store(t, out)
	return out
}

func mayContainText(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Array // the kinds before Array are numbers and booleans
}

// in prepends place to the place of the secret.
func (f *Found) in(place string) *Found {
	f.Place = place + f.Place
	return f
}

// nameOf returns the name that a field has in files.
func nameOf(f reflect.StructField) string {
	for _, tag := range []string{"col", "json"} {
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
			return name
		}
	}
	return f.Name
}

// text searches one text. A secret is reported as "known" only if no rule found any.
func (w *walker) text(s string) *Found {
	if w.clear[s] || w.seen[s] {
		return nil
	}
	w.red.Text(s)
	if w.red.Take() == 0 {
		w.seen[s] = true
		return nil
	}
	kinds := w.red.Counts()
	for kind := range kinds {
		if kind != "known" || len(kinds) == 1 {
			return &Found{Kind: kind}
		}
	}
	return nil
}
