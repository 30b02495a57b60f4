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

// Every exit reason there is has its row in the table, and every row a class and
// an outcome that exist: an ending nobody classified would count as ours.
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
		t.Error("an exit nobody knows is blamed on the agent")
	}
}
