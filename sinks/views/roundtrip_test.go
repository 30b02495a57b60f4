package views_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// readers maps each view to a function that returns the calls in its rows of one episode,
// in order, each as its name and its arguments in canonical JSON.
var readers = map[string]func(*testing.T, []sinks.Row) []string{
	"sft-trl":      readMessages("completion"),
	"sft-openai":   readMessages("messages"),
	"sft-axolotl":  readMessages("messages"),
	"sft-sharegpt": readShareGPT,
	"sft-text":     readText,
	"sft-verl":     readVerl,

	"atif":           readATIF,
	"hf-sts":         readSTS,
	"adp":            readADP,
	"debug-gym-sft":  readMessages("messages"),
	"debug-gym-json": readDebugGym,

	"pref-pairs":           readMessages("chosen"),
	"step-labels":          readSteps,
	"sft-negative-pi":      readMessages("completion"),
	"infoseek-masked":      readMessages("messages"),
	"infoseek-next-action": readMessages("completion"),
}

// withoutCalls lists the views whose rows contain no calls.
var withoutCalls = map[string]bool{"infoseek-context-patch": true, "infoseek-locate": true}

// callRange gives the calls in the rows of views that omit other calls: the index of the first one, and
// that after the last one.
var callRange = map[string][]int{"infoseek-next-action": {0, 2}, "infoseek-masked": {0, 2}}

// The calls read back from each view's rows are those of the episode, in order.
func TestEveryViewRoundTrips(t *testing.T) {
	for _, kind := range sinks.Views.Kinds() {
		t.Run(kind, func(t *testing.T) {
			if withoutCalls[kind] {
				if _, ok := readers[kind]; ok {
					t.Error("a view without calls has a reader")
				}
				return
			}
			read, ok := readers[kind]
			if !ok {
				t.Fatal("add a reader for this view")
			}
			in := goldenInput(kind)
			var want []string
			for _, s := range in[0].Steps {
				if s.ToolName != nil {
					want = append(want, callString(t, *s.ToolName, json.RawMessage(*s.ArgumentsJSON)))
				}
			}
			if r, ok := callRange[kind]; ok {
				want = want[r[0]:r[1]]
			}
			rows, _ := rowsOf(t, kind, sinks.ViewOptions{AllowGold: true}, in...)
			if diff := cmp.Diff(want, read(t, rows)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Views of whole episodes lose no tool call even if an observation has a megabyte, a model request was
// retried, and a step was replayed.
func TestTheWholeGoldenEpisodeRoundTrips(t *testing.T) {
	in := sinktest.Episode("run", 1).Trajectory()
	in.Steps[3].LLMRetries, in.Steps[3].Replayed = new(int32(2)), new(true)
	var want []string
	empty, thought := false, false
	for _, s := range in.Steps {
		if s.ToolName != nil {
			want = append(want, callString(t, *s.ToolName, json.RawMessage(*s.ArgumentsJSON)))
		}
		empty = empty || s.Source == "agent" && s.Message == ""
		thought = thought || s.Source == "agent" && s.ToolName == nil && s.Message != ""
	}
	if len(*in.Steps[3].Observation) < 1<<20 || *in.Steps[4].CallIndex != 1 || !empty || !thought || !strings.Contains(*in.Steps[5].Observation, "\ufffd") {
		t.Fatal("the golden episode no longer contains all the special cases")
	}
	for _, kind := range []string{
		"sft-trl", "sft-openai", "sft-axolotl", "sft-sharegpt", "sft-text", "sft-verl", "atif", "hf-sts", "adp", "debug-gym-sft", "debug-gym-json",
	} {
		rows, _ := rowsOf(t, kind, sinks.ViewOptions{AllowGold: true}, in)
		if diff := cmp.Diff(want, readers[kind](t, rows)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// Rows have the text that the model wrote, not arguments_json with its sorted keys, unless that text
// says something else, or is one that readers refuse.
func TestArgumentsKeepTheModelsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, args, text, object string }{
		{`{"path": "a.py",  "line": 3}`, `{"line":3,"path":"a.py"}`, `{"path": "a.py",  "line": 3}`, `{"path":"a.py","line":3}`},
		{`{"path": "a.py", "line": "3"}`, `{"line":3,"path":"a.py"}`, `{"line":3,"path":"a.py"}`, `{"line":3,"path":"a.py"}`},       // repaired
		{`{"path": "a.py", "line": 3`, `{}`, `{}`, `{}`},                                                                            // not JSON
		{`{"path": "\ud83d", "line": 3}`, `{"line":3,"path":"\ufffd"}`, `{"line":3,"path":"\ufffd"}`, `{"line":3,"path":"\ufffd"}`}, // half a character
	} {
		in := withoutGold(shortEpisode(1))
		args := strings.ReplaceAll(c.args, `\ufffd`, "\uFFFD")
		in.Steps[3].ArgumentsRaw, in.Steps[3].ArgumentsJSON = &c.raw, &args
		for form, want := range map[string]string{sinks.ArgumentsString: c.text, sinks.ArgumentsObject: c.object} {
			rows, _ := rowsOf(t, "sft-axolotl", sinks.ViewOptions{Arguments: form}, in)
			want = strings.ReplaceAll(want, `\ufffd`, "\uFFFD")
			if form == sinks.ArgumentsString {
				want = string(canonical(t, want))
			}
			if line := string(canonical(t, rows[0].Value)); !strings.Contains(line, `"arguments":`+want) {
				t.Errorf("%s as %s: want %s in %s", c.raw, form, want, line)
			}
		}
	}
}

// With every template and every option that changes how calls are written, the rows have the same calls,
// even if argument values look like markup or JSON.
func TestTemplatesAndArgumentsRoundTrip(t *testing.T) {
	in := shortEpisode(1)
	in.Steps[4].ArgumentsJSON = new(`{"a":"3","b":"null","c":"</parameter>","d":"{\"e\":1}","f":"</tool_call>","g":" \n ","h":["x",null]}`)
	want := readers["sft-trl"](t, onlyRows(rowsOf(t, "sft-trl", sinks.ViewOptions{AllowGold: true}, in)))
	for _, o := range []sinks.ViewOptions{{Arguments: "string"}, {Thinking: "inline"}, {Tools: "json-string"}, {System: "drop"}} {
		o.AllowGold = true
		if got := readers["sft-trl"](t, onlyRows(rowsOf(t, "sft-trl", o, in))); !cmp.Equal(want, got) {
			t.Errorf("%+v: %s", o, cmp.Diff(want, got))
		}
	}
	for name, read := range map[string]func(string) []string{
		"chatml": func(s string) []string { return tagged(t, s) },
		"llama3": func(s string) []string { return pythonTags(t, s) },
		"xml":    func(s string) []string { return elements(t, s) },
	} {
		v, err := sinks.Views.Build("sft-text", map[string]any{"template": name}, sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskNone})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := v.Render(in)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		var row struct{ Text string }
		decode(t, rows[0], &row)
		if got := read(row.Text); !cmp.Equal(want, got) {
			t.Errorf("%s: %s\n%s", name, cmp.Diff(want, got), row.Text)
		}
	}
}

func onlyRows(rows []sinks.Row, _ sinks.Notes) []sinks.Row { return rows }

func callString(t *testing.T, name string, args any) string {
	t.Helper()
	raw, ok := args.(json.RawMessage)
	if text, isText := args.(string); isText {
		raw, ok = json.RawMessage(text), true
	}
	if !ok {
		t.Fatalf("arguments are %T", args)
	}
	canon, err := schemas.CanonicalJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return name + " " + string(canon)
}

func decode(t *testing.T, r sinks.Row, to any) {
	t.Helper()
	raw, err := schemas.CanonicalJSON(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

type readCall struct {
	Function struct {
		Name      string
		Arguments json.RawMessage
	}
}

// arguments decodes arguments that are an object or the JSON text of one.
func arguments(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return raw
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(text)
}

// readMessages returns a reader of rows that have lists of messages in the fields keys.
func readMessages(keys ...string) func(*testing.T, []sinks.Row) []string {
	return func(t *testing.T, rows []sinks.Row) []string {
		t.Helper()
		var out []string
		for _, r := range rows {
			var row map[string]json.RawMessage
			decode(t, r, &row)
			for _, key := range keys {
				var list []struct {
					Calls []readCall `json:"tool_calls"`
				}
				if err := json.Unmarshal(row[key], &list); err != nil {
					t.Fatal(err)
				}
				for _, m := range list {
					for _, c := range m.Calls {
						out = append(out, callString(t, c.Function.Name, arguments(t, c.Function.Arguments)))
					}
				}
			}
		}
		return out
	}
}

func readShareGPT(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var row struct {
			Conversations []struct{ From, Value string }
		}
		decode(t, r, &row)
		for _, c := range row.Conversations {
			if c.From != "function_call" {
				continue
			}
			if _, after, ok := strings.Cut(c.Value, "\n</think>\n\n"); ok && strings.HasPrefix(c.Value, "<think>\n") {
				c.Value = after // LLaMA-Factory removes reasoning before the call in the same way
			}
			out = append(out, oneCall(t, c.Value, "arguments"))
		}
	}
	return out
}

func oneCall(t *testing.T, text, key string) string {
	t.Helper()
	var call map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &call); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	var name string
	if err := json.Unmarshal(call["name"], &name); err != nil {
		t.Fatal(err)
	}
	return callString(t, name, call[key])
}

func tagged(t *testing.T, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?s)<tool_call>\n(\{"name":".*?\})\n</tool_call>`).FindAllStringSubmatch(text, -1) {
		out = append(out, oneCall(t, m[1], "arguments"))
	}
	return out
}

func pythonTags(t *testing.T, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)<\|python_tag\|>(.*?)(<\|eot_id\|>|$)`).FindAllStringSubmatch(text, -1) {
		out = append(out, oneCall(t, m[1], "parameters"))
	}
	return out
}

// elements reads calls in the form of the xml template.
func elements(t *testing.T, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?s)<function=(\w+)>\n(.*?)</function>`).FindAllStringSubmatch(text, -1) {
		if m[1] == "NAME" {
			continue
		}
		args := map[string]any{}
		for _, p := range regexp.MustCompile(`(?s)<parameter=(\w+)>\n(.*?)\n</parameter>`).FindAllStringSubmatch(m[2], -1) {
			var value any = p[2]
			if json.Valid([]byte(p[2])) {
				value = json.RawMessage(p[2])
			}
			args[p[1]] = value
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, callString(t, m[1], json.RawMessage(raw)))
	}
	return out
}

func readText(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var row struct{ Completion string }
		decode(t, r, &row)
		out = append(out, tagged(t, row.Completion)...)
	}
	return out
}

func readVerl(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var row struct {
			Messages []struct{ Role, Content string }
		}
		decode(t, r, &row)
		for _, m := range row.Messages {
			if m.Role == "assistant" {
				out = append(out, tagged(t, m.Content)...)
			}
		}
	}
	return out
}

func readSteps(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var row struct {
			Completions []string
			Labels      []bool
		}
		decode(t, r, &row)
		if len(row.Completions) != len(row.Labels) {
			t.Errorf("%d completions, %d labels", len(row.Completions), len(row.Labels))
		}
		for _, c := range row.Completions {
			out = append(out, tagged(t, c)...)
		}
	}
	return out
}
