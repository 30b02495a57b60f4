package imports

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestFunctionsInTexts(t *testing.T) {
	tools := []schemas.ToolSchema{{Name: "f", Parameters: json.RawMessage(`{"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "odd": 3}}`)}}
	for text, want := range map[string][]string{
		"no call": nil,
		"<function=f>\n<parameter=n>3</parameter>\n<parameter=s>3</parameter>\n</function>":       {`f{"n":3,"s":"3"}`},
		"<function=f>\n<parameter=n>three</parameter>\n</function>":                               {`f{"n":"three"}`},
		"<function=g>\n<parameter=a>\n  x\n\n</parameter>\n</function> <function=g>\n</function>": {`g{"a":"  x\n"}`},
		"<function=g></function>":                                 {"g{}"},
		"<function=g>\n<parameter=a>1\n<parameter=b>2</function>": {`g{"a":"1","b":"2"}`},
		"<function=g>\n<parameter=a>1":                            {`g{"a":"1"}`},
		"<tool_call>\n<function=g>\n</function>\n</tool_call>\n<tool_call>\n<function=h>\n</function>": {"g{}", "h{}"},
		"<function=a b>": nil,
	} {
		var got []string
		for _, f := range functionsIn(text, tools) {
			got = append(got, f.name+string(f.arguments))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzFunctionsIn(f *testing.F) {
	f.Add("<function=f>\n<parameter=n>3</parameter>\n</function>")
	f.Add("<tool_call><function=f><parameter=n><parameter=n></function><tool_call><function=g>")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range functionsIn(text, nil) {
			var args map[string]any
			if err := json.Unmarshal(c.arguments, &args); err != nil {
				t.Errorf("arguments %s: %v", c.arguments, err)
			}
			if !strings.Contains(text, "<function="+c.name+">") {
				t.Errorf("the text does not contain the name %q", c.name)
			}
		}
	})
}
