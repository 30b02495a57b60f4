package mutate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cases reads a table of snippets: name and text.
func cases(t *testing.T, file string) (names, texts []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split("\n"+string(raw), "\n== ")[1:] {
		name, text, _ := strings.Cut(c, "\n")
		names, texts = append(names, name), append(texts, strings.TrimSuffix(text, "\n")+"\n")
	}
	return names, texts
}

// Each operator makes exactly the changes of its table, in source order: after >> are the removed
// and added lines.
func TestOperatorsMatchTheirTables(t *testing.T) {
	b := start(t, "testdata/shop")
	names, texts := cases(t, "testdata/operators.txt")
	known := map[string]bool{}
	for _, o := range b.Operators() {
		known[o.ID] = true
		if o.Family == "" || o.Title == "" || o.Symptom == "" {
			t.Errorf("%+v lacks a family, title or symptom", o)
		}
	}
	if len(known) < 35 {
		t.Errorf("%d operators", len(known))
	}
	for i, op := range names {
		before, _, _ := strings.Cut(texts[i], ">>\n")
		file := fmt.Sprintf("case_%s.py", op)
		if err := b.sb.WriteFile(t.Context(), workdir+"/"+file, []byte(before), 0); err != nil {
			t.Fatal(err)
		}
		got := before
		for _, s := range b.sites(file) {
			if s.Operator == op {
				got += ">>\n" + changedLines(b.apply(s).Patch)
			}
		}
		if diff := cmp.Diff(strings.Split(texts[i], "\n"), strings.Split(got, "\n")); diff != "" || !strings.Contains(got, ">>") {
			t.Errorf("%s:\n%s", op, diff)
		}
		delete(known, op)
	}
	for op := range known {
		t.Errorf("%s has no table", op)
	}
}

func changedLines(patch []byte) string {
	var out strings.Builder
	for i, line := range strings.SplitAfter(string(patch), "\n") {
		if i > 2 && (strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-")) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// The name of a case may end with the ids of the operators to check; otherwise it checks all.
func TestSkippedNodesHaveNoSites(t *testing.T) {
	b := start(t, "testdata/shop")
	names, texts := cases(t, "testdata/untouched.txt")
	for i, name := range names {
		if err := b.sb.WriteFile(t.Context(), workdir+"/case.py", []byte(texts[i]), 0); err != nil {
			t.Fatal(err)
		}
		_, only, some := strings.Cut(name, ": ")
		for _, s := range b.sites("case.py") {
			if some && !strings.Contains(only, s.Operator) {
				continue
			}
			t.Errorf("%s: %s line %d: %s", name, s.Operator, s.Line, s.Note)
		}
	}
}
