package selection_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/selection"
)

var update = flag.Bool("update", false, "rewrite the table of docs/filter.md")

const (
	page  = "../../docs/filter.md"
	table = "| Predicate | Expression | Meaning |\n| --- | --- | --- |\n"
)

// The table in docs/filter.md has the predicates of predicates.yaml.
func TestPageListsPredicates(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(raw), table)
	var want strings.Builder
	want.WriteString(before + table)
	cell := strings.NewReplacer("|", `\|`)
	for _, p := range selection.Predicates() {
		fmt.Fprintf(&want, "| `%s` | `%s` | %s |\n", cell.Replace(p.Usage()), cell.Replace(p.Expr), cell.Replace(p.Meaning))
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want.String() {
		t.Errorf("the table of predicates in %s is out of date: run make docs", page)
	}
}
