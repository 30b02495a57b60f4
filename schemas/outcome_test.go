package schemas

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every exit reason is in the table with a valid class and outcome: an episode with
// an unknown reason would count as an infrastructure failure.
func TestEveryExitHasClassAndOutcome(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(c.Names[0].Name, "Exit") && len(c.Values) == 1 {
			if lit, ok := c.Values[0].(*ast.BasicLit); ok {
				reason, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				named[reason] = true
			}
		}
		return true
	})
	if len(named) < 19 || len(Exits) != len(named) {
		t.Errorf("%d reasons, %d rows", len(named), len(Exits))
	}
	outcomes := map[string][]string{
		"agent": {OutcomeUnresolved, OutcomeAgentError}, "budget": {OutcomeLimit}, "infra": {OutcomeInfra}, "operator": {OutcomeCancelled},
	}
	for reason := range named {
		if e, ok := Exits[reason]; !ok || !slices.Contains(outcomes[e.Class], e.Outcome) || !slices.Contains(Outcomes, e.Outcome) {
			t.Errorf("%s: %+v, %v", reason, e, ok)
		}
	}
	if OutcomeOf("unheard_of", Verdict{}) != OutcomeInfra {
		t.Error("an unknown exit reason is blamed on the agent")
	}
}

// Without a verdict, no outcome says that the agent failed.
func TestOutcomeWithoutAVerdict(t *testing.T) {
	no, yes := false, true
	for _, c := range []struct {
		exit    string
		verdict Verdict
		want    string
	}{
		{ExitSubmitted, Verdict{Status: VerifyNotRun}, OutcomeUnverified},
		{ExitSubmitted, Verdict{Status: VerifyNotApplicable}, OutcomeUnverified},
		{ExitSubmitted, Verdict{}, OutcomeUnverified},
		{ExitMaxSteps, Verdict{Status: VerifyNotApplicable}, OutcomeUnverified},
		{ExitNoToolCall, Verdict{Status: VerifyNotRun}, OutcomeUnverified},
		{ExitSubmitted, Verdict{Status: VerifiedFail, Resolved: &no}, OutcomeUnresolved},
		{ExitMaxSteps, Verdict{Status: VerifiedFail, Resolved: &no}, OutcomeLimit},
		{ExitMaxSteps, Verdict{Status: VerifiedPass, Resolved: &yes}, OutcomeResolved},
		{ExitStuck, Verdict{Status: VerifiedFail, Resolved: &no}, OutcomeAgentError},
		{ExitBadWorkspace, Verdict{Status: VerifyNotRun}, OutcomeAgentError},
		{ExitSubmitted, Verdict{Status: VerifyError}, OutcomeInfra},
		{ExitEnvError, Verdict{Status: VerifyNotRun}, OutcomeInfra},
		{ExitCancelled, Verdict{Status: VerifyNotRun}, OutcomeCancelled},
	} {
		if got := OutcomeOf(c.exit, c.verdict); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.exit, c.verdict.Status, got, c.want)
		}
	}
	if !slices.Contains(Outcomes, OutcomeUnverified) {
		t.Error("the ledger does not count unverified episodes")
	}
}
