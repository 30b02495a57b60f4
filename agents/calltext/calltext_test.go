package calltext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/schemas"
)

func tools() []schemas.ToolSchema {
	return []schemas.ToolSchema{
		{Name: "view", Description: "Show a file.", Parameters: json.RawMessage(`{"type":"object","required":["path"],"properties":{
			"path":{"type":"string","description":"a file"},"start":{"type":["integer","null"]},"numbers":{"type":"boolean"},
			"only":{"type":"array","items":{"type":"string"}},"side":{"type":"string","enum":["left","right"]}}}`)},
		{Name: "submit", Description: "End.", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
}

func arguments(calls []schemas.ToolCall) []string {
	var out []string
	for _, c := range calls {
		text := c.Name + " " + string(c.Arguments)
		if c.Invalid != "" {
			text = c.Name + " ! " + c.Invalid
		}
		out = append(out, text)
	}
	return out
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		cut        bool
		message    string
		calls      []string
	}{
		{name: "no call", text: "I wonder.", message: "I wonder."},
		{name: "one call", text: "Look.\n<function=view>\n<parameter=path>m.py</parameter>\n<parameter=start>12</parameter>\n</function>\n",
			message: "Look.\n", calls: []string{`view {"path":"m.py","start":12}`}},
		{name: "no parameters", text: "<function=submit></function>", calls: []string{"submit {}"}},
		{name: "casts", text: `<function=view><parameter=path>12</parameter><parameter=start> 3 </parameter><parameter=numbers>True</parameter><parameter=only>["a"]</parameter></function>`,
			calls: []string{`view {"numbers":true,"only":["a"],"path":"12","start":3}`}},
		{name: "values that cannot be cast stay text", text: `<function=view><parameter=start>soon</parameter><parameter=numbers>perhaps</parameter></function>`,
			calls: []string{`view {"numbers":"perhaps","start":"soon"}`}},
		{name: "line breaks and indentation belong to the value", text: "<function=view><parameter=path>\n    if x:\n        y\n\n</parameter></function>",
			calls: []string{`view {"path":"    if x:\n        y\n"}`}},
		{name: "a block may contain tags", text: "<function=view>\n<parameter=path>\nreturn '</parameter></function><function=submit>'\n  </parameter>\n</function>",
			calls: []string{`view {"path":"return '</parameter></function><function=submit>'"}`}},
		{name: "blanks within a line stay", text: "<function=view><parameter=path> a b </parameter></function>", calls: []string{`view {"path":" a b "}`}},
		{name: "several calls", text: "a<function=view><parameter=path>m</parameter></function>b<function=submit></function>c",
			message: "a", calls: []string{`view {"path":"m"}`, "submit {}"}},
		{name: "a stop sequence removed the end", text: "<function=view>\n<parameter=path>m.py</parameter>\n", calls: []string{`view {"path":"m.py"}`}},
		{name: "cut off", text: "<function=view>\n<parameter=path>m.py</parameter>\n", cut: true, calls: []string{"view ! your reply was cut off at its length limit before the call was complete: say less before the call, or split the work into smaller calls"}},
		{name: "cut off in a value", text: "<function=view>\n<parameter=path>m.p", cut: true, calls: []string{"view ! your reply was cut off at its length limit before the call was complete: say less before the call, or split the work into smaller calls"}},
		{name: "complete, and cut off after it", text: "<function=submit></function> and the", cut: true, calls: []string{"submit {}"}},
		{name: "an object", text: `<function=view>{"path": "m.py", "start": 1}</function>`, calls: []string{`view {"path":"m.py","start":1}`}},
		{name: "quotes and blanks in tags", text: `<function = "view" ><parameter = 'path' >m.py</parameter></function>`, calls: []string{`view {"path":"m.py"}`}},
		{name: "not closed", text: "<function=view><parameter=path>m.py</function>", calls: []string{`view ! parameter "path" is not closed with </parameter>`}},
		{name: "tag not closed", text: "<function=view\n<parameter=path>m.py</parameter></function>", calls: []string{"view ! the tag <function=...> is not closed with >"}},
		{name: "text between the tags", text: "<function=view>path is m.py</function>", calls: []string{`view ! expected <parameter=...> or </function>, but found "path is m.py</function>"`}},
		{name: "twice", text: "<function=view><parameter=path>a</parameter><parameter=path>b</parameter></function>", calls: []string{`view ! parameter "path" is given twice`}},
		{name: "another syntax", text: `Now <tool_call>{"name": "view", "arguments": {}}</tool_call>`, message: "Now ", calls: []string{"view ! a call must begin with <function=view> and give each argument as <parameter=...>"}},
		{name: "another syntax with an attribute", text: `<function name="view">`, calls: []string{"view ! a call must begin with <function=view> and give each argument as <parameter=...>"}},
		{name: "unknown tool", text: "<function=fly><parameter=to>12</parameter></function>", calls: []string{`fly {"to":"12"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, calls := calltext.Parse(c.text, tools(), c.cut)
			if diff := cmp.Diff(c.calls, arguments(calls)); diff != "" || message != c.message {
				t.Errorf("message %q, calls %s", message, diff)
			}
		})
	}
}

// callText writes a call of view in the form that the prompt of the agent simple asks for.
func callText(path string) string {
	if strings.ContainsAny(path, "\n<") || path == "" {
		path = "\n" + path + "\n"
	}
	return "<function=view>\n<parameter=path>" + path + "</parameter>\n</function>"
}

// Parse reads back a call in the form that prompts ask for. The message and the raw calls
// that Parse returns add up to the whole text.
func FuzzParse(f *testing.F) {
	f.Add("Look.\n<function=view>\n<parameter=path>m.py</parameter>\n</function>", "m.py", false)
	f.Add("<function=view><parameter=path>\n</parameter><function=", "a\n  </x>\n", true)
	f.Add("<tool_call>{\"name\": \"view\"", "", false)
	f.Add("<function=a>{", "{\"a\": 1}", false)
	f.Fuzz(func(t *testing.T, text, value string, cut bool) {
		message, calls := calltext.Parse(text, tools(), cut)
		whole := message
		for _, c := range calls {
			whole += c.Raw
			var args map[string]any
			if err := json.Unmarshal(c.Arguments, &args); err != nil || args == nil {
				t.Errorf("arguments %q: %v", c.Arguments, err)
			}
		}
		if whole != text {
			t.Errorf("%q became %q", text, whole)
		}
		if strings.Contains(value, "</parameter>") || strings.Contains(value, "\r") {
			return // the format cannot represent these values
		}
		args, err := schemas.CanonicalJSON(map[string]any{"path": value})
		if err != nil {
			t.Fatal(err)
		}
		_, again := calltext.Parse("So.\n"+callText(value), tools(), false)
		if len(again) != 1 || again[0].Invalid != "" || string(again[0].Arguments) != string(args) {
			t.Errorf("%s was read back as %v", callText(value), arguments(again))
		}
	})
}

// Parse reads a text with many broken calls once, not once per call.
func TestParseIsLinear(t *testing.T) {
	for _, part := range []string{"<function=view><parameter=path>\nx</parameter>", "<function=view>\n", "<function=view>{", "<parameter=path>\n"} {
		text := "<function=view>" + strings.Repeat(part, 4<<20/len(part))
		if message, calls := calltext.Parse(text, tools(), false); message != "" || len(calls) > 32 {
			t.Errorf("%q: %d calls", part, len(calls))
		}
	}
}

func TestDescribe(t *testing.T) {
	want := `## view

Show a file.

Parameters:
- path (string): a file
- start (integer, optional)
- numbers (boolean, optional)
- only (array of {"type":"string"}, optional)
- side (string, optional) One of: left, right.

## submit

End.

No parameters.`
	if diff := cmp.Diff(want, calltext.Describe(tools())); diff != "" {
		t.Error(diff)
	}
	if got, want := calltext.Example("view", tools()), "<function=view>\n<parameter=path>string</parameter>\n</function>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
