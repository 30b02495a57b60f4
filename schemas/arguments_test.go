package schemas_test

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestShownArguments(t *testing.T) {
	for _, c := range []struct {
		raw, args string
		valid     bool
		want      string
	}{
		{"", `{"a":1}`, true, `{"a":1}`},
		{`{"b": 2, "a": 1}`, `{"a":1,"b":2}`, true, `{"b": 2, "a": 1}`},
		{`{"a": "1"}`, `{"a":1}`, true, `{"a":1}`}, // repaired
		{`[1,2]`, `{}`, false, `[1,2]`},
		{`{path: x`, `{}`, false, `{path: x`},
	} {
		row := schemas.StepRow{ArgumentsJSON: &c.args, ArgumentsValid: &c.valid}
		if c.raw != "" {
			row.ArgumentsRaw = &c.raw
		}
		if got := row.ShownArguments(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.raw, got, c.want)
		}
	}
}
