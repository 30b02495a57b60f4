package viewer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// claimView is what a message asserts, with the auditor's verdict.
type claimView struct {
	Verdict, Class string
	Text, Why      string
	Extracted      bool
}

var claimClasses = map[string]string{schemas.ClaimTrue: "good", schemas.ClaimFalse: "bad", schemas.ClaimUnchecked: "plain"}

// claimsOf returns the claims of a step.
func claimsOf(s *schemas.StepRow) []claimView {
	if s.ClaimsJSON == nil {
		return nil
	}
	var claims []schemas.CheckedClaim
	if err := json.Unmarshal([]byte(*s.ClaimsJSON), &claims); err != nil {
		return []claimView{{Verdict: "damaged", Class: "bad", Text: visible(*s.ClaimsJSON)}}
	}
	var out []claimView
	for _, c := range claims {
		out = append(out, claimView{
			Verdict: visible(c.Verdict), Class: cmp.Or(claimClasses[c.Verdict], "plain"),
			Text: visible(claimText(c.Claim)), Why: visible(c.Why), Extracted: c.Extracted,
		})
	}
	return out
}

// claimText returns a claim as a phrase: its kind, and the fields that it has.
func claimText(c schemas.Claim) string {
	place := c.File
	if c.Line > 0 {
		place = strings.TrimPrefix(fmt.Sprintf("%s:%d", c.File, c.Line), ":")
	}
	count := ""
	if c.Count != nil {
		count = plural(int64(*c.Count), "test")
	}
	hit := ""
	if c.Hit > 0 {
		hit = fmt.Sprint(c.Hit)
	}
	function := "function"
	if c.Caller != "" {
		function = "→"
	}
	parts := []string{strings.ReplaceAll(c.Kind, "_", " ") + ":"}
	for _, f := range []struct{ label, value string }{
		{"", c.Test}, {"", count}, {"", c.Caller}, {function, c.Function}, {"at", place}, {"", c.Expression}, {"is", c.Value}, {"and", c.Other},
		{"text", c.Text}, {"message", c.Message}, {"stop", hit}, {"because", c.Reason},
	} {
		if f.value != "" {
			parts = append(parts, strings.TrimSpace(f.label+" "+f.value))
		}
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ":")
}

// unseenOf returns what a step is the first to mention although nothing had shown it.
func unseenOf(s *schemas.StepRow) []string {
	var found []struct{ Kind, Text string }
	if s.UnseenJSON == nil || json.Unmarshal([]byte(*s.UnseenJSON), &found) != nil {
		return nil
	}
	var out []string
	for _, f := range found {
		out = append(out, visible(f.Kind+" "+f.Text))
	}
	return out
}
