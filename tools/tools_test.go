package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Numbers such as A23 in the names of tests are rows of docs/internals/parity.md.

type echoArgs struct {
	Path  string   `json:"path" jsonschema:"Where."`
	Start *int     `json:"start,omitempty" jsonschema:"From."`
	Ratio *float64 `json:"ratio,omitempty" jsonschema:"How much."`
	Quiet *bool    `json:"quiet,omitempty" jsonschema:"Say less."`
}

// echo returns its arguments as JSON, or fails in the way that path names.
func echo() tools.Tool {
	start := 3
	return tools.Define(tools.Def[echoArgs]{
		Name: "echo", Category: "other", Description: "Echo.", Example: echoArgs{Path: "a.py", Start: &start},
		Call: func(_ context.Context, _ *env.Session, a echoArgs) (schemas.Observation, error) {
			switch a.Path {
			case "panic":
				var none map[string]int
				//lint:ignore SA5000 the panic is the point
				none["x"] = 1
			case "mistake":
				return schemas.Observation{}, tools.NewUserError("not %s", "so")
			case "full":
				return schemas.Observation{}, fmt.Errorf("writing: %w", env.ErrNoSpace)
			case "refused":
				return schemas.Observation{}, fmt.Errorf("opening x: permission denied: %w", env.ErrRefused)
			case "died":
				return schemas.Observation{}, fmt.Errorf("asking: %w", env.ErrSandboxDied)
			}
			b, err := json.Marshal(a)
			return schemas.Observation{Text: string(b)}, err
		},
		On: func(_ context.Context, _ *env.Session, e env.Event) (schemas.Observation, error) {
			return schemas.Observation{Text: "heard " + e.Kind}, nil
		},
	})
}

func newSet(t testing.TB, list ...tools.Tool) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaIsClosedAndOptionalIsOptional(t *testing.T) {
	var got any
	if err := json.Unmarshal(echo().Schema().Parameters, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "required": []any{"path"}, "additionalProperties": false,
		"properties": map[string]any{
			"path":  map[string]any{"type": "string", "description": "Where."},
			"start": map[string]any{"type": []any{"null", "integer"}, "description": "From."},
			"ratio": map[string]any{"type": []any{"null", "number"}, "description": "How much."},
			"quiet": map[string]any{"type": []any{"null", "boolean"}, "description": "Say less."},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestArguments(t *testing.T) {
	set := newSet(t, echo())
	for _, c := range []struct {
		name, args, want string   // want: the arguments as the tool got them
		says             []string // or: what the refusal must say
	}{
		{name: "plain", args: `{"path":"a","start":2}`, want: `{"path":"a","start":2}`},
		{name: "only required", args: `{"path":"a"}`, want: `{"path":"a"}`},
		{name: "null is absent", args: `{"path":"a","start":null,"quiet":null}`, want: `{"path":"a"}`},
		{name: "integer as text", args: `{"path":"a","start":"12"}`, want: `{"path":"a","start":12}`},
		{name: "integer as float", args: `{"path":"a","start":2.0}`, want: `{"path":"a","start":2}`},
		{name: "boolean as text", args: `{"path":"a","quiet":"True"}`, want: `{"path":"a","quiet":true}`},
		{name: "number as text", args: `{"path":"a","ratio":"0.5"}`, want: `{"path":"a","ratio":0.5}`},
		{name: "nothing as text", args: `{"path":"a","start":"null","quiet":""}`, want: `{"path":"a"}`},
		{name: "text as number", args: `{"path":404}`, want: `{"path":"404"}`},
		{name: "missing", args: `{}`, says: []string{`"path"`, "missing", "a string", `{"path":"a.py","start":3}`}},
		{name: "nothing at all", args: ``, says: []string{`"path"`, "missing"}},
		{name: "null required", args: `{"path":null}`, says: []string{`"path"`, "must be a string", "null"}},
		{name: "fraction", args: `{"path":"a","start":2.5}`, says: []string{`"start"`, "an integer", "2.5", "a correct call", "path"}},
		{name: "wrong type", args: `{"path":"a","start":"two"}`, says: []string{`"start"`, "an integer", `"two"`}},
		{name: "list", args: `{"path":["a"]}`, says: []string{`"path"`, "a string", `["a"]`}},
		{name: "unknown", args: `{"path":"a","file":"b"}`, says: []string{`unknown argument "file"`, "path", "start (optional)"}},
		{name: "all at once", args: `{"file":"b","start":[]}`, says: []string{`"file"`, `"start"`, `"path"`}},
		{name: "not an object", args: `["a"]`, says: []string{"one JSON object", `["a"]`}},
		{name: "NUL", args: `{"path":"a\u0000b"}`, says: []string{`"path"`, "NUL"}},
		{name: "huge number", args: `{"path":"a","start":1e400}`, says: []string{`"start"`, "an integer"}},
		{name: "infinite", args: `{"path":"a","ratio":"inf"}`, says: []string{`"ratio"`, "a number"}},
		{name: "hexadecimal", args: `{"path":"a","start":"0x10"}`, says: []string{`"start"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := set.Call(t.Context(), nil, schemas.ToolCall{Name: "echo", Arguments: []byte(c.args)})
			if err != nil {
				t.Fatal(err)
			}
			if c.says == nil {
				if o.Text != c.want || o.IsError {
					t.Errorf("got %+v, want %s", o, c.want)
				}
				return
			}
			if !o.IsError || o.ErrorClass != schemas.ErrBadArguments {
				t.Errorf("class = %q, want bad_arguments", o.ErrorClass)
			}
			for _, s := range c.says {
				if !strings.Contains(strings.ToLower(o.Text), strings.ToLower(s)) {
					t.Errorf("%q does not say %q", o.Text, s)
				}
			}
		})
	}
}

// Values inside lists and objects are coerced like arguments.
func TestNestedArguments(t *testing.T) {
	type item struct {
		Line int     `json:"line"`
		Note *string `json:"note,omitempty"`
	}
	type args struct {
		Items []item `json:"items"`
		Steps []int  `json:"steps,omitempty"`
	}
	set := newSet(t, tools.Define(tools.Def[args]{
		Name: "nested", Example: args{Items: []item{{Line: 3}}}, Required: []string{"steps"},
		Call: func(_ context.Context, _ *env.Session, a args) (schemas.Observation, error) {
			raw, err := json.Marshal(a)
			return schemas.Observation{Text: string(raw)}, err
		},
	}))
	for in, want := range map[string]string{
		`{"items":[{"line":"7","note":null},{"line":2.0,"note":12}],"steps":["1",2]}`: `{"items":[{"line":7},{"line":2,"note":"12"}],"steps":[1,2]}`,
		`{"items":"[{\"line\": 4}]","steps":"[1]"}`:                                   `{"items":[{"line":4}],"steps":[1]}`, // JSON in a string
		`{"items":["{\"line\": 4}"],"steps":"1"}`:                                     `"steps" must be a list`,
		`{"items":[],"steps":[]}`:                                                     `{"items":[]}`,
		`{"items":[{"line":"seven"}],"steps":[]}`:                                     "seven",
		`{"items":[{"line":null}],"steps":[]}`:                                        "line",
		`{"items":[{"line":1,"more":2}],"steps":[]}`:                                  "more",
		`{"items":[null],"steps":[1.5]}`:                                              "The call to nested was not run",
		`{"items":{"line":1},"steps":[1]}`:                                            `"items" must be a list`,
		`{"items":[{"line":1}]}`:                                                      `"steps" (a list) is missing`,
		`{"items":[[{"line":1}]],"steps":[[1]]}`:                                      "The call to nested was not run",
		`{"items":[{"note":"no line"}],"steps":["x"]}`:                                "line",
	} {
		o, err := set.Call(t.Context(), nil, schemas.ToolCall{Name: "nested", Arguments: []byte(in)})
		if err != nil || !strings.Contains(o.Text, want) || o.IsError == strings.HasPrefix(want, "{") {
			t.Errorf("%s: %s, %v", in, o.Text, err)
		}
	}
}

func TestFailedCalls(t *testing.T) {
	set := newSet(t, echo())
	call := func(name, path, invalid string) schemas.ToolCall {
		return schemas.ToolCall{Name: name, Arguments: []byte(fmt.Sprintf(`{"path":%q}`, path)), Invalid: invalid}
	}
	for _, c := range []struct {
		name  string
		call  schemas.ToolCall
		class string
		says  string
	}{
		{"unknown tool", call("ehco", "a", ""), schemas.ErrUnknownTool, `no tool named "ehco". Call one of: echo.`},
		{"malformed", call("echo", "a", "arguments must be a JSON object"), schemas.ErrBadArguments, "was not run: arguments must be a JSON object. Send one JSON object"},
		{"cut off", schemas.ToolCall{Name: "echo", Invalid: "hit the limit", Truncated: true}, schemas.ErrCutOff, "was not run: hit the limit."},
		{"panic", call("echo", "panic", ""), schemas.ErrToolException, "tools_test.go:"},
		{"mistake", call("echo", "mistake", ""), schemas.ErrUserError, "not so"},
		{"disk full", call("echo", "full", ""), schemas.ErrUserError, "disk is full"},
		{"refused", call("echo", "refused", ""), schemas.ErrUserError, "permission denied"},
	} {
		o, err := set.Call(t.Context(), nil, c.call)
		if err != nil || o.ErrorClass != c.class || !o.IsError || !strings.Contains(o.Text, c.says) {
			t.Errorf("%s: %+v, %v; want class %s saying %q", c.name, o, err, c.class, c.says)
		}
	}
	if _, err := set.Call(t.Context(), nil, call("echo", "died", "")); !errors.Is(err, env.ErrSandboxDied) {
		t.Errorf("a dead sandbox gave %v", err)
	}
}

func TestA23ListenersHearInOrder(t *testing.T) {
	listener := func(name string) tools.Tool {
		return tools.Define(tools.Def[struct{}]{Name: name,
			Call: func(context.Context, *env.Session, struct{}) (schemas.Observation, error) {
				return schemas.Observation{}, nil
			},
			On: func(context.Context, *env.Session, env.Event) (schemas.Observation, error) {
				if name == "quiet" {
					return schemas.Observation{}, nil
				}
				return schemas.Observation{Text: name}, nil
			}})
	}
	observations, err := newSet(t, listener("b"), listener("quiet"), listener("a")).Notify(t.Context(), nil, env.Event{Kind: env.EventReset})
	if err != nil || len(observations) != 2 || observations[0].Source != "b" || observations[1].Source != "a" {
		t.Errorf("got %+v, %v", observations, err)
	}
	if _, err := tools.NewSet([]tools.Tool{listener("a"), listener("a")}); err == nil {
		t.Error("two tools of one name were accepted")
	}
}

func TestFit(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "line %d é\n", i)
	}
	text := b.String()
	o := tools.Fit(schemas.Observation{Text: text}, "ask for less")
	switch {
	case len(o.Text) > tools.MaxText, len(o.Text) < tools.MaxText*9/10:
		t.Errorf("%d bytes", len(o.Text))
	case !o.Truncated, o.FullText != text, o.FullBytes != int64(len(text)):
		t.Errorf("truncated=%v full=%d of %d", o.Truncated, len(o.FullText), o.FullBytes)
	case !strings.HasPrefix(o.Text, "line 0 é\n"), !strings.HasSuffix(o.Text, "line 39999 é\n"):
		t.Errorf("head or tail is gone")
	case !utf8.ValidString(o.Text), !strings.Contains(o.Text, "; ask for less ...]\nline "):
		t.Errorf("the cut is not clean")
	}
	var missing, total int64
	at := strings.Index(o.Text, "[... ")
	if _, err := fmt.Sscanf(o.Text[at:], "[... %d of %d bytes cut here", &missing, &total); err != nil {
		t.Fatal(err)
	}
	end := at + strings.Index(o.Text[at:], "]\n") + 2
	if shown := int64(at - 1 + len(o.Text) - end); missing+shown != total || total != int64(len(text)) {
		t.Errorf("%d shown + %d cut != %d", shown, missing, total)
	}

	huge := tools.Fit(schemas.Observation{Text: strings.Repeat("é", 2<<20), FullBytes: 1 << 30}, "")
	if len(huge.FullText) > tools.MaxFullText || !utf8.ValidString(huge.FullText+huge.Text) || huge.FullBytes != 1<<30 {
		t.Errorf("full text of %d bytes, true size %d", len(huge.FullText), huge.FullBytes)
	}
	if small := tools.Fit(schemas.Observation{Text: "x"}, ""); small.Truncated || small.FullText != "" || small.FullBytes != 1 {
		t.Errorf("small text became %+v", small)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain é\n\tx":                "plain é\n\tx",
		"a\r\nb\r\n":                  "a\nb\n",
		" 10%\r 20%\rdone\nnext":      "done\nnext",
		"kept\r":                      "kept",
		"\x1b[31mred\x1b[0m \x1b[2K!": "red !",
		"\x1b]0;title\x07x\x1b(By":    "xy",
		"\x1b]8;;http://x\x1b\\link":  "link",
		"bad \xff\xfe bytes":          "bad \uFFFD bytes",
		"\x00\x01\b\x7f\u0085end":     "end",
		"\x1b":                        "",
		"\x1b]open\nnext":             "open\nnext",
	} {
		if got := tools.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\r\nb\x1b[0m\xff")
	f.Add("10%\r20%\r\n\x1b]0;never ended\nx\u0085")
	f.Fuzz(func(t *testing.T, s string) {
		got := tools.Clean(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x00\x07") {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if again := tools.Clean(got); again != got {
			t.Errorf("cleaning twice changes %q to %q", got, again)
		}
		if row := schemas.Plain(got); row != got {
			t.Errorf("a row has %q, the model sees %q", row, got)
		}
	})
}

func FuzzArguments(f *testing.F) {
	set := newSet(f, echo())
	f.Add([]byte(`{"path":"a","start":"12","quiet":null}`))
	f.Add([]byte(`{"path":{"a":[1,2.5,"x"]}}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		o, err := set.Call(t.Context(), nil, schemas.ToolCall{Name: "echo", Arguments: args})
		if err != nil {
			if strings.Contains(string(args), "died") {
				return
			}
			t.Fatal(err)
		}
		if o.Text == "" || o.ErrorClass == schemas.ErrToolException && !strings.Contains(string(args), "panic") {
			t.Errorf("%q gave %+v", args, o)
		}
	})
}

// foreignTool is a tool with the given schema. It returns its arguments.
type foreignTool struct{ schema string }

func (f foreignTool) Schema() schemas.ToolSchema {
	return schemas.ToolSchema{Name: "foreign", Description: "Foreign.", Parameters: []byte(f.schema)}
}
func (foreignTool) Category() string { return "other" }
func (foreignTool) Call(_ context.Context, _ *env.Session, args []byte) (schemas.Observation, error) {
	return schemas.Observation{Text: string(args)}, nil
}

// A required argument that may be null is passed on as null. An optional argument that is
// null is left out.
func TestRequiredNullIsAValue(t *testing.T) {
	set := newSet(t, foreignTool{`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},` +
		`"c":{"type":["integer","null"]},"d":{"enum":["x"]}},"required":["a","b","d"]}`})
	for args, want := range map[string]string{
		`{"a":null,"b":null,"c":null,"d":"x"}`: `{"a":null,"b":null,"d":"x"}`,
		`{"a":"s","b":1,"c":2,"d":null}`:       "enum",
		`{"b":1,"d":"x"}`:                      `"a" (a string) is missing`,
	} {
		o, err := set.Call(t.Context(), nil, schemas.ToolCall{Name: "foreign", Arguments: []byte(args)})
		if err != nil || !strings.Contains(o.Text, want) {
			t.Errorf("%s: %+v, %v; want %s", args, o, err, want)
		}
	}
}
