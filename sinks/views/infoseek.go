package views

import (
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// requireNewInformation returns the requirement of the views of turns that look for information.
func requireNewInformation() requirement {
	return requirement{
		what:   "no turn that looked for information says whether it found new information (is_new_information)",
		remedy: "export a run or dataset made by tracesmith, not an imported one; with --phase, choose the conversation that looks for information",
	}
}

// newInformation returns the first row of a turn whose call looked for something and found
// new information, or nil. known is false if the rows of the turn do not say whether they
// found new information.
func (t turn) newInformation() (row *schemas.StepRow, known bool) {
	for _, r := range t.rows {
		if !strings.HasPrefix(r.ActionKind, "seek_") {
			continue
		}
		if r.IsNewInformation == nil {
			continue
		}
		known = true
		if *r.IsNewInformation && (r.IsError == nil || !*r.IsError) && row == nil {
			row = r
		}
	}
	return row, known
}

// skipUninformativeTurns skips the turns that did not look for information or did not find
// new information.
func skipUninformativeTurns(c *conversation, r *requirement) {
	for i := range c.turns {
		row, known := c.turns[i].newInformation()
		r.observe(known)
		c.turns[i].skip = row == nil
	}
}

// issueOf returns the problem of an episode's task, or "" if it is unknown.
func issueOf(t sinks.Trajectory) string {
	if t.Episode.ProblemStatement != nil {
		return *t.Episode.ProblemStatement
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Source == "user" && s.TurnIndex == nil {
			return s.Message
		}
	}
	return ""
}

// verifiedPatch returns the patch of an episode that passed verification, and its source:
// gold if steps of the episode come from the gold patch, agent otherwise. If the episode
// does not have a usable patch, the patch is "", and notes count the reason.
func verifiedPatch(t sinks.Trajectory, o sinks.ViewOptions, notes sinks.Notes) (patch, source string) {
	e := t.Episode
	switch {
	case e.Resolved == nil || !*e.Resolved || e.VerifyStatus != "verified_pass":
		notes["episodes_without_pass"]++
	case schemas.Value(e.Patch) == "":
		notes["episodes_without_patch"]++
	case !usedGold(t):
		return *e.Patch, "agent"
	case !o.AllowGold:
		notes["episodes_without_rows_gold"]++
	default:
		return *e.Patch, "gold"
	}
	return "", ""
}
