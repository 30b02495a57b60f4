package policies_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
)

// rowsOf returns the rows of steps, with the columns about claims.
func rowsOf(t *testing.T, task schemas.Task, steps []schemas.Step) (schemas.EpisodeRow, []schemas.StepRow) {
	t.Helper()
	e, rows, err := normalise.Rows(&schemas.Episode{Task: task, Steps: steps}, normalise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Claims(&e, metrics.Read(rows, task.Workdir)); err != nil {
		t.Fatal(err)
	}
	return e, rows
}

// claimsWith returns the claims of an episode that have a verdict, as "kind value".
func claimsWith(t *testing.T, verdict string, rows []schemas.StepRow) (found []string) {
	t.Helper()
	for _, r := range rows {
		var claims []schemas.CheckedClaim
		if r.ClaimsJSON == nil {
			continue
		}
		if err := json.Unmarshal([]byte(*r.ClaimsJSON), &claims); err != nil {
			t.Fatal(err)
		}
		for _, c := range claims {
			if c.Verdict == verdict {
				text, err := schemas.CanonicalJSON(c.Claim)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, string(text))
			}
		}
	}
	return found
}

// checkStoredClaims checks that the claims of an agent are true, as far as the auditor decides them.
func checkStoredClaims(t *testing.T, task schemas.Task, steps []schemas.Step) {
	t.Helper()
	e, rows := rowsOf(t, task, steps)
	if wrong := claimsWith(t, schemas.ClaimFalse, rows); len(wrong) > 0 {
		t.Errorf("false claims: %q", wrong)
	}
	isCause := func(claim string) bool { return strings.Contains(claim, `"kind":"cause"`) } // only the fix could decide it
	unchecked := slices.DeleteFunc(claimsWith(t, schemas.ClaimUnchecked, rows), isCause)
	yes, all := *e.NClaimsTrue, *e.NClaimsTrue+*e.NClaimsFalse+int32(len(unchecked)) //nolint:gosec // a small number
	if all < 5 || 10*yes < 9*all {
		t.Errorf("%d of %d claims are true; unchecked: %q", yes, all, unchecked)
	}
	for _, r := range rows {
		if r.ClaimsJSON != nil && strings.Contains(*r.ClaimsJSON, `"extracted":true`) {
			t.Errorf("step %d: the agent did not store the claims of %q", r.StepIndex, r.Message)
		}
	}
	before := rows[len(rows)-1].ClaimsJSON
	if _, err := audit.Claims(&e, metrics.Read(rows, task.Workdir)); err != nil || *rows[len(rows)-1].ClaimsJSON != *before || *e.NClaimsTrue != yes {
		t.Errorf("the audit of audited rows differs: %v", err)
	}
}

// falseClaims lists the claims that bad-false-rulefile makes against the observations.
var falseClaims = []string{
	`{"count":8,"kind":"fails"}`,
	`{"hit":3,"kind":"stops"}`,
	`{"function":"render","kind":"stops"}`,
	`{"expression":"column","kind":"value","value":"13"}`,
	`{"expression":"margin","kind":"value","value":"10"}`,
	`{"expression":"match.start()","kind":"value","value":"24"}`,
	`{"expression":"line","kind":"value","value":"1"}`,
	`{"kind":"not_executed","line":34}`,
	`{"count":9,"kind":"passes"}`,
}

// checkExtractedClaims checks what the auditor finds in the text of a hand-written transcript.
func checkExtractedClaims(t *testing.T, name string, task schemas.Task, steps []schemas.Step) {
	t.Helper()
	_, rows := rowsOf(t, task, steps)
	found := claimsWith(t, schemas.ClaimFalse, rows)
	if name != "bad-false-rulefile" {
		if len(found) > 0 {
			t.Errorf("claims are called false: %q", found)
		}
		return
	}
	for _, want := range falseClaims {
		if !slices.Contains(found, want) {
			t.Errorf("not called false: %s", want)
		}
	}
}

// sentence is a line of heldout.yaml.
type sentence struct {
	In    string `yaml:"in"`
	After int    `yaml:"after"` // calls
	Holds bool   `yaml:"holds"`
	Text  string `yaml:"text"`
}

func heldOut(t *testing.T) []sentence {
	t.Helper()
	text, err := os.ReadFile("../../pipeline/audit/testdata/heldout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []sentence
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkHeldOut checks that no sentence about a transcript gets a wrong verdict. It counts the decided sentences.
func checkHeldOut(t *testing.T, name string, task schemas.Task, steps []schemas.Step, decided map[bool]int) {
	t.Helper()
	for _, s := range heldOut(t) {
		if s.In != name {
			continue
		}
		_, rows := rowsOf(t, task, steps[:s.After])
		record := audit.Read(metrics.Read(rows, task.Workdir))
		verdicts := map[string]bool{}
		for _, c := range audit.Extract(s.Text, record) {
			verdicts[audit.Check(c, record).Verdict] = true
		}
		switch {
		case s.Holds && verdicts[schemas.ClaimFalse], !s.Holds && verdicts[schemas.ClaimTrue] && len(verdicts) == 1:
			t.Errorf("after call %d: %q is called %v", s.After, s.Text, !s.Holds)
		case !s.Holds && verdicts[schemas.ClaimFalse], s.Holds && verdicts[schemas.ClaimTrue] && len(verdicts) == 1:
			decided[s.Holds]++
		}
	}
}
