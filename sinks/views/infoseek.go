package views

import (
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// newsRequirement is that of the views of turns that look for information.
func newsRequirement() requirement {
	return requirement{
		what:   "no turn that looked for something says whether it brought new information (is_new_information)",
		remedy: "export a run or dataset made by tracesmith, not one that was imported, and with --phase the conversation that looks",
	}
}

// seeking is the first row of a turn that looked for something and found what the
// episode had not shown before; nil if it has none. known is false where its rows
// do not say.
func (t turn) seeking() (row *schemas.StepRow, known bool) {
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

// onlySeeking has nothing but seeking turns trained on.
func onlySeeking(c *conversation, r *requirement) {
	for i := range c.turns {
		row, known := c.turns[i].seeking()
		r.observe(known)
		c.turns[i].skip = row == nil
	}
}

// issueOf is what an episode was to solve; "" if nobody says.
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

// verifiedPatch is the patch of an episode that a verifier passed, and whose it
// is: agent, or gold where content of it comes from the gold patch.
func verifiedPatch(t sinks.Trajectory, o sinks.ViewOptions, notes sinks.Notes) (patch, source string) {
	e := t.Episode
	switch {
	case e.Resolved == nil || !*e.Resolved || e.VerifyStatus != "verified_pass":
		notes["episodes_without_pass"]++
	case value(e.Patch) == "":
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
