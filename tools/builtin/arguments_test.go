package builtin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
)

// One set of tools serves several episodes: the state of a tool belongs to the episode.
func TestB1ToolsKeepNothingOfAnEpisode(t *testing.T) {
	b, other := newToolSession(t, files{"sub/x": ""}), newToolSession(t, files{})
	other.set = b.set
	b.sh("cd sub; export SEEN=1")
	if got := other.sh("pwd; echo [$SEEN]"); got != "/testbed\n[]\n" {
		t.Errorf("another episode's shell: %q", got)
	}
	if got := b.sh("pwd; echo [$SEEN]"); got != "/testbed/sub\n[1]\n" {
		t.Errorf("the episode's own shell: %q", got)
	}
	for _, s := range b.set.Schemas() {
		_, example, ok := strings.Cut(s.Description, "\nExample arguments: ")
		if !ok || !json.Valid([]byte(example)) {
			t.Errorf("%s: no example in %q", s.Name, s.Description)
		}
	}
}

// required holds arguments with which each tool does something.
var required = map[string]args{
	"bash": {"command": "pwd"}, "view": {"path": "src/main.py"}, "grep": {"pattern": "line 3"}, "pdb": {"command": "w"},
	"edit": {"path": "src/main.py", "new_code": "x"}, "listdir": {}, "eval": {}, "submit": {},
}

// exampleOf returns the values of the required arguments in a description's example.
func exampleOf(t *testing.T, description string, names []string) args {
	t.Helper()
	_, text, _ := strings.Cut(description, "Example arguments: ")
	var all args
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&all); err != nil {
		t.Fatalf("%v in the example of %q", err, description)
	}
	base := args{}
	for _, name := range names {
		base[name] = all[name]
	}
	return base
}

// Some providers mark every parameter as required, so models send null for an optional
// argument. For every tool, null means the same as leaving the argument out.
// This test proves row WC12 of docs/internals/parity.md.
func TestWC12OptionalArgumentsMayBeNullOrAbsent(t *testing.T) {
	b := newToolSession(t, files{"src/main.py": ""})
	optional := 0
	for _, tool := range tooltest.Kit(t, nil) {
		s := tool.Schema()
		var schema jsonschema.Schema
		if err := json.Unmarshal(s.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		call := func(a args) string {
			if err := b.Sandbox.WriteFile(t.Context(), "/testbed/src/main.py", []byte(numbered(20)), 0); err != nil {
				t.Fatal(err)
			}
			return b.call(s.Name, a).Text
		}
		base, known := required[s.Name]
		if !known {
			base = exampleOf(t, s.Description, schema.Required)
		}
		want, nulls, strict := call(base), args{}, schema
		strict.Required = nil
		for name, p := range schema.Properties {
			strict.Required = append(strict.Required, name)
			if v, given := base[name]; given {
				nulls[name] = v
				continue
			}
			optional++
			nulls[name] = nil
			a := args{name: nil}
			for k, v := range base {
				a[k] = v
			}
			if got := call(a); got != want {
				t.Errorf("%s with %s null: %q, without: %q", s.Name, name, got, want)
			}
			if slices.Contains(p.Types, "integer") {
				checkInteger(t, b, s.Name, name, base)
			}
		}
		if got := call(nulls); got != want {
			t.Errorf("%s with all null: %q, want %q", s.Name, got, want)
		}
		resolved, err := strict.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: the strict variant is no schema: %v", s.Name, err)
		}
		raw, _ := json.Marshal(nulls)
		var sent map[string]any
		_ = json.Unmarshal(raw, &sent)
		if err := resolved.Validate(sent); err != nil {
			t.Errorf("%s: the strict variant refuses null: %v", s.Name, err)
		}
	}
	if optional < 15 {
		t.Errorf("only %d optional arguments were seen", optional)
	}
}

// checkInteger checks that an integer may also be a string or a float, and that "" means
// that it is missing.
func checkInteger(t *testing.T, b *toolSession, tool, name string, base args) {
	t.Helper()
	for _, v := range []any{1, 1.0, "1", " 1 ", "1.0", "", "null", json.Number("1e0")} {
		a := args{name: v}
		for k, v := range base {
			a[k] = v
		}
		if o := b.call(tool, a); o.ErrorClass == schemas.ErrBadArguments {
			t.Errorf("%s %s=%#v: %s", tool, name, v, o.Text)
		}
	}
	for _, v := range []any{1.5, "one", true, []int{1}} {
		a := args{name: v}
		for k, v := range base {
			a[k] = v
		}
		if o := b.call(tool, a); o.ErrorClass != schemas.ErrBadArguments || !strings.Contains(o.Text, name) {
			t.Errorf("%s %s=%#v: %+v", tool, name, v, o)
		}
	}
}
