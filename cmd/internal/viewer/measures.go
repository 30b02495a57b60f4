package viewer

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// measureGroup is a group of columns of table episodes that are not null.
type measureGroup struct {
	Title  string
	Values []param
}

// endings and verdicts say in words what the values of columns ending and verify_status mean.
var (
	endings = map[string]string{
		schemas.EndingEdit: "after an edit", schemas.EndingGoldEdit: "after the reference fix", schemas.EndingConclusion: "with a conclusion, without an edit", schemas.EndingNone: "without an edit or a conclusion",
	}
	verdicts = map[string]string{schemas.VerifiedPass: "passed", schemas.VerifiedFail: "failed", schemas.VerifyNotRun: "not run", schemas.VerifyNotApplicable: "there is nothing to verify"}
)

// facts returns who ran an episode and how much that took.
func facts(e *schemas.EpisodeRow) []param {
	var out []param
	add := func(name, value string) {
		if value != "" {
			out = append(out, param{visible(name), visible(value)})
		}
	}
	task := e.TaskSource + "/" + e.InstanceID
	add("Task", task)
	if e.Repo != task {
		add("Repository", e.Repo)
	}
	add("Agent", strings.TrimSpace(e.AgentName+" "+schemas.Value(e.AgentVersion)))
	if e.Model != "none" {
		add("Model", e.Model)
	}
	for i, phase := range e.Phases[:min(len(e.Phases), len(e.PhaseModels))] {
		add("Model of "+phase, e.PhaseModels[i])
	}
	if e.OutcomeText() != schemas.Value(e.Outcome) {
		add("Outcome", outcomeAbout(e))
	}
	add("Ended", strings.TrimSuffix(e.ExitReason+", "+endings[schemas.Value(e.Ending)], ", "))
	add("Effort", fmt.Sprintf("%s, %s", plural(e.NTurns, "turn"), plural(e.NSteps, "step")))
	if e.PromptTokens != nil {
		add("Tokens", fmt.Sprintf("%s prompt%s, %s reply%s", grouped(*e.PromptTokens), ofWhich(e.CachedTokens, "cached"),
			grouped(schemas.Value(e.CompletionTokens)), ofWhich(e.ReasoningTokens, "reasoning")))
	}
	if e.CostUSD != nil {
		add("Cost", observe.USD(*e.CostUSD))
	}
	if e.WallMS != nil {
		add("Time", millis(*e.WallMS))
	}
	add("Started", e.CreatedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	add("Verifier", schemas.Value(e.VerifyReason))
	add("Error", strings.TrimPrefix(schemas.Value(e.ErrorClass)+": "+schemas.Value(e.ErrorMessage), ": "))
	return out
}

// verdict returns how the verifier judged the patch.
func verdict(e *schemas.EpisodeRow) []param {
	out := []param{{"Verdict", cmp.Or(verdicts[e.VerifyStatus], visible(e.VerifyStatus))}}
	if e.VerifyMethod != nil {
		out = append(out, param{"Method", visible(*e.VerifyMethod)})
	}
	if e.F2PTotal != nil && e.F2PPassed != nil {
		out = append(out, param{"Failing tests that pass now", fmt.Sprintf("%d of %d", *e.F2PPassed, *e.F2PTotal)})
	}
	if e.P2PTotal != nil && e.P2PPassed != nil {
		out = append(out, param{"Passing tests that still pass", fmt.Sprintf("%d of %d", *e.P2PPassed, *e.P2PTotal)})
	}
	if e.VerifyReason != nil {
		out = append(out, param{"Reason", visible(*e.VerifyReason)})
	}
	return out
}

// evidence returns how well the texts of an episode rest on what it saw.
func evidence(e *schemas.EpisodeRow) []param {
	var out []param
	if e.NClaimsTrue != nil {
		out = append(out, param{"Claims", fmt.Sprintf("%d true, %d false, %d unchecked", *e.NClaimsTrue, schemas.Value(e.NClaimsFalse), schemas.Value(e.NClaimsUnchecked))})
	}
	if e.NUnseen != nil {
		out = append(out, param{"Names that nothing had shown", fmt.Sprint(*e.NUnseen)})
	}
	if e.GroundedShare != nil {
		out = append(out, param{"Share of the texts that rest on observations", fmt.Sprintf("%.0f %%", 100**e.GroundedShare)})
	}
	for _, f := range []struct {
		name  string
		value *bool
	}{
		{"Names the cause", e.NamesCause}, {"Debugger output differs on the fixed program", e.GoldEvidenceDiffers}, {"Looks like a reward hack", e.RewardHack},
	} {
		if f.value != nil {
			out = append(out, param{f.name, map[bool]string{true: "yes", false: "no"}[*f.value]})
		}
	}
	return out
}

// inOtherPlaces are columns that the page shows elsewhere, or that are too long for a table.
var inOtherPlaces = map[string]bool{"patch": true, "problem_statement": true, "minhash_b64": true}

// measures returns all columns of an episode that have a value: what it measured, what was computed
// with the gold patch, and the rest.
func measures(e *schemas.EpisodeRow) []measureGroup {
	groups := []measureGroup{{Title: "Behavior and quality"}, {Title: "Measured with the gold patch"}, {Title: "All other columns"}}
	row := reflect.ValueOf(e).Elem()
	for _, c := range arrowrec.Episodes.Columns {
		value := c.Value(row)
		if value == nil || inOtherPlaces[c.Name] {
			continue
		}
		group := 2
		switch value.(type) {
		case int32, float64, bool:
			group = 0
		}
		if strings.HasPrefix(c.Name, "gold_") {
			group = 1
		}
		if text := columnText(value); text != "" {
			groups[group].Values = append(groups[group].Values, param{c.Name, visible(text)})
		}
	}
	return groups
}

func columnText(value any) string {
	switch v := value.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case []string:
		return strings.Join(v, ", ")
	case float64:
		return fmt.Sprintf("%.4g", v)
	}
	return fmt.Sprint(value)
}
