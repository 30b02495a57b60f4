package schemas

import (
	"encoding/json"
	"testing"
	"time"
)

type word string

func (w word) MarshalText() ([]byte, error) { return []byte("<" + w + ">"), nil }

// Encoding a value directly gives the same JSON as encoding, decoding and sorting it.
func TestCanonicalJSONOfValues(t *testing.T) {
	type pair struct {
		B string `json:"b"`
		A any    `json:"a,omitempty"`
	}
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"nothing":     {nil, `null`},
		"lists":       {[][3]string{{"<a>", "&\u2028", "é\n"}, {}}, `[["<a>","&\u2028","é\n"],["","",""]]`},
		"no list":     {[]string(nil), `null`},
		"maps":        {map[string]int{"b": 1, "a<": 2, "": 3}, `{"":3,"a<":2,"b":1}`},
		"of any":      {map[string]any{"z": []any{json.Number("1e400"), true, nil, 1.5}, "a": map[string]any{}}, `{"a":{},"z":[1e400,true,null,1.5]}`},
		"not UTF-8":   {map[string]any{"k\xff": []string{"a\xffb", `\ufffd`}}, `{"k�":["a�b","\\ufffd"]}`},
		"structs":     {[]pair{{"x", nil}, {"y", map[string]any{"d": pair{"q", 1}, "c": 0}}}, `[{"b":"x"},{"a":{"c":0,"d":{"a":1,"b":"q"}},"b":"y"}]`},
		"in a struct": {&pair{A: []any{&pair{B: "<"}}}, `{"a":[{"b":"<"}],"b":""}`},
		"raw":         {map[string]any{"r": json.RawMessage(` {"b": 1.0, "a": "\u003c"} `)}, `{"r":{"a":"<","b":1.0}}`},
		"bytes":       {[]any{[]byte("abc"), []byte{}}, `["YWJj",""]`},
		"marshalers":  {[]any{word("a"), time.Unix(0, 0).UTC()}, `["<a>","1970-01-01T00:00:00Z"]`},
	} {
		got, err := CanonicalJSON(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
		raw, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		if long, err := CanonicalJSON(json.RawMessage(raw)); err != nil || string(long) != c.want {
			t.Errorf("%s: decoded and sorted it is %s, %v", name, long, err)
		}
	}
	if _, err := CanonicalJSON([]any{func() {}}); err == nil {
		t.Error("a function was encoded")
	}
}
