package policies_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// diagnosed is an episode with a message that names the cause.
type diagnosed struct {
	name    string
	episode schemas.EpisodeRow
	rows    []schemas.StepRow
	tools   []schemas.ToolSchema
	names   map[string]bool // identifiers of the repository; nil if they are unknown

	at     int // the row that names the cause
	text   string
	claims []schemas.CheckedClaim // of the text
}

// diagnose finds the diagnosis: the sentences from the one that names the cause on, with their claims.
func (d diagnosed) diagnose() (diagnosed, bool) {
	for i := range d.rows {
		var claims []schemas.CheckedClaim
		r := &d.rows[i]
		if r.ClaimsJSON == nil || json.Unmarshal([]byte(*r.ClaimsJSON), &claims) != nil {
			continue
		}
		first := slices.IndexFunc(claims, func(c schemas.CheckedClaim) bool { return c.Kind == schemas.ClaimCause })
		if first < 0 {
			continue
		}
		d.at, d.text, d.claims = i, r.Message, claims[first:]
		for _, begin := range []string{"So line ", "So the order ", "I think that line "} {
			if at := strings.LastIndex(r.Message, begin); at >= 0 {
				d.text = r.Message[at:]
			}
		}
		return d, true
	}
	return d, false
}

// doubts returns what the auditor finds wrong with a diagnosis of another episode in the place of this one's, or with this one's.
func (d diagnosed) doubts(t *testing.T, other diagnosed) (out []string) {
	t.Helper()
	rows := slices.Clone(d.rows[:d.at+1])
	row := &rows[d.at]
	row.Message, row.ToolName, row.ToolCategory, row.ArgumentsJSON, row.Observation = other.text, nil, nil, nil, nil
	var claims []schemas.Claim
	for _, c := range other.claims {
		claims = append(claims, c.Claim)
	}
	stored, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	row.ClaimsJSON = new(string(stored))
	episode, e := metrics.Read(rows, schemas.DefaultWorkdir), d.episode
	if _, err := audit.Claims(&e, episode); err != nil {
		t.Fatal(err)
	}
	var checked []schemas.CheckedClaim
	if err := json.Unmarshal([]byte(*row.ClaimsJSON), &checked); err != nil {
		t.Fatal(err)
	}
	for _, c := range checked {
		if c.Verdict == schemas.ClaimFalse || c.Verdict == schemas.ClaimUnchecked && c.Why != audit.CauseShown {
			out = append(out, fmt.Sprintf("%s %s: %s", c.Verdict, c.Kind, c.Why))
		}
	}
	c := closure.NewClosure(d.tools, d.names)
	for i := range rows {
		unseen := c.Step(&rows[i], episode.Readings[i].Lines)
		if i == d.at && len(unseen) > 0 {
			out = append(out, fmt.Sprintf("unseen %v", unseen))
		}
	}
	return out
}
