package audit

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestEnding(t *testing.T) {
	const cause = "The cause is that `half` rounds down."
	edit := callRow(3, "", "edit", `{"path":"m.py"}`, "")
	edit.ActionKind = metrics.Edit
	gold, refused := edit, edit
	gold.GoldEdit, refused.IsError = new(true), new(true)
	handover := callRow(3, "", "handover", "{}", "Handed over: 1 code excerpt and 0 values.")
	said := callRow(3, cause, "view", `{"path":"m.py"}`, "")
	for name, c := range map[string]struct {
		rows   []schemas.StepRow
		ending string
		cause  bool
	}{
		"nothing":               {episode(), schemas.EndingNone, false},
		"a refused edit":        {append(episode(), refused), schemas.EndingNone, false},
		"an edit":               {append(episode(), edit), schemas.EndingEdit, false},
		"a gold edit":           {append(episode(), said, gold, edit), schemas.EndingGoldEdit, true},
		"a cause":               {append(episode(), said), schemas.EndingConclusion, true},
		"a handover":            {append(episode(), handover), schemas.EndingConclusion, false},
		"a cause before a look": {[]schemas.StepRow{callRow(0, cause, "eval", "{}", failing)}, schemas.EndingNone, false},
	} {
		e := schemas.EpisodeRow{NamesCause: new(!c.cause)}
		if _, err := Claims(&e, metrics.Read(c.rows, "")); err != nil {
			t.Fatal(err)
		}
		if *e.Ending != c.ending || e.NamesCause != nil && *e.NamesCause != c.cause || e.NamesCause == nil && c.cause {
			t.Errorf("%s: ending %s, names_cause %v", name, *e.Ending, schemas.Value(e.NamesCause))
		}
	}
}

func TestExtractCauses(t *testing.T) {
	r := recordOf(episode(), "")
	for text, want := range map[string]string{
		"The cause: half rounds down if n is odd.":          "half rounds down if n is odd.",
		"So line 2 is the cause: it rounds down.":           "So line 2",
		"The root cause of the failure is the operator //.": "the operator //.",
		"The cause is still unclear.":                       "",
		"The cause is not line 5.":                          "",
		"Line 5 is not the cause.":                          "",
		"I want to see whether line 5 is the cause.":        "",
		"Which line is the cause?":                          "",
	} {
		got := ""
		for _, c := range Extract(text, r) {
			if c.Kind == schemas.ClaimCause {
				got = c.Reason
			}
		}
		if got != want {
			t.Errorf("%s\n got %q, want %q", text, got, want)
		}
	}
}
