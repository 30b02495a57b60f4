package house

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// parityRow is one line of a table in docs/internals/parity.md.
type parityRow struct{ relation, text string }

// series are the rows there must be: prefix and how many.
var series = map[string]int{"A": 29, "B": 41, "C": 7, "D": 15, "E": 13, "F": 14, "G": 17, "WC": 41, "WP": 12, "WS": 12}

var (
	rowLine    = regexp.MustCompile(`^\| ([A-Z]+[0-9]+) \| ([^|]*) \| (.*) \|$`)
	parityTest = regexp.MustCompile(`^Test(?:EachPython|EachDriver|Docker)?((?:A|B|C|D|E|F|G|WC|WP|WS)[0-9]+)([A-Z].*)?$`)
)

// parityRows reads the page.
func parityRows(t *testing.T) map[string]parityRow {
	t.Helper()
	page, err := os.ReadFile("docs/internals/parity.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]parityRow{}
	for line := range strings.Lines(string(page)) {
		m := rowLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if _, twice := rows[m[1]]; twice {
			t.Errorf("docs/internals/parity.md has two rows %s", m[1])
		}
		rows[m[1]] = parityRow{m[2], strings.TrimSpace(m[3])}
	}
	return rows
}

// parityTests finds the test functions that are named for a row, and tells why
// one of them does not count.
func parityTests(t *testing.T) (byRow map[string][]string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	byRow = map[string][]string{}
	for _, name := range strings.Fields(string(out)) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, not committed yet
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			m := parityTest.FindStringSubmatch(fn.Name.Name)
			if m == nil {
				continue
			}
			if why := doesNotCount(fn, m[2]); why != "" {
				t.Errorf("%s: %s %s", name, fn.Name.Name, why)
				continue
			}
			byRow[m[1]] = append(byRow[m[1]], name+": "+fn.Name.Name)
		}
	}
	return byRow
}

// doesNotCount says why a test function proves nothing: it has no name of its
// own, no body, or may pass without having run. Skips that a switch of the
// environment decides stand in functions of their own, which say so loudly.
func doesNotCount(fn *ast.FuncDecl, rest string) string {
	if rest == "" {
		return "says nothing after its row"
	}
	if fn.Body == nil || len(fn.Body.List) == 0 {
		return "is empty"
	}
	skips := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				skips = true
			}
		}
		return true
	})
	if skips {
		return "skips"
	}
	return ""
}

func TestEveryParityRowHasItsTest(t *testing.T) {
	rows, tests := parityRows(t), parityTests(t)
	for prefix, n := range series {
		for i := 1; i <= n; i++ {
			id := prefix + strconv.Itoa(i)
			row, there := rows[id]
			switch {
			case !there:
				t.Errorf("docs/internals/parity.md has no row %s", id)
				continue
			case row.text == "":
				t.Errorf("docs/internals/parity.md: %s says nothing", id)
			}
			checkRow(t, id, row, tests[id])
			delete(rows, id)
			delete(tests, id)
		}
	}
	for id := range rows {
		t.Errorf("docs/internals/parity.md: %s is no row of the list", id)
	}
	for id, names := range tests {
		t.Errorf("%s: %v: no such row", id, names)
	}
}

func checkRow(t *testing.T, id string, row parityRow, tests []string) {
	t.Helper()
	switch row.relation {
	case "kept", "better", "otherwise", "absent":
		if len(tests) == 0 {
			t.Errorf("%s (%s) has no test function Test%s...", id, row.text, id)
		}
	case "not here":
		if len(tests) > 0 {
			t.Errorf("%s is not here, and yet tested by %v", id, tests)
		}
		if len(strings.Fields(row.text)) < 5 {
			t.Errorf("%s is not here without a reason", id)
		}
	default:
		t.Errorf("%s: %q is none of kept, better, otherwise, absent, not here", id, row.relation)
	}
}

// The rule itself: what counts, and as which row.
func TestParityTestsAreRecognised(t *testing.T) {
	for name, want := range map[string]string{
		"TestA1Record": "A1", "TestA10Fatal": "A10", "TestWC4TimeoutKeepsBreakpoints": "WC4",
		"TestArguments": "", "TestB": "", "TestD1lowercase": "",
	} {
		got := ""
		if m := parityTest.FindStringSubmatch(name); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s counts for %q, want %q", name, got, want)
		}
	}
	for body, want := range map[string]string{
		"t.Log(1)": "", "": "is empty", `if x { t.Skip("no") }`: "skips",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc TestA1X(t *T) {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := doesNotCount(file.Decls[0].(*ast.FuncDecl), "X"); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
