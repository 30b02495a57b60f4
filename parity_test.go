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

const parityPage = "docs/internals/parity.md"

// parityRow is one line of a table in the page.
type parityRow struct {
	id, relation, text string
	tests              []string // names of test functions
}

// rowCounts is the number of rows that the page must have, by the prefix of their ids.
var rowCounts = map[string]int{"A": 29, "B": 41, "C": 7, "D": 15, "E": 13, "F": 14, "G": 17, "WC": 41, "WP": 12, "WS": 12}

var (
	rowLine  = regexp.MustCompile(`^\| ([A-Z]+[0-9]+) \| ([^|]*) \| (.*) \| ([^|]*)\|$`)
	testName = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
)

// parseRow returns the row of a line, or false for lines that are not a row.
func parseRow(line string) (parityRow, bool) {
	m := rowLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
	if m == nil {
		return parityRow{}, false
	}
	row := parityRow{id: m[1], relation: m[2], text: strings.TrimSpace(m[3])}
	for _, name := range testName.FindAllStringSubmatch(m[4], -1) {
		row.tests = append(row.tests, name[1])
	}
	return row, true
}

// parityRows reads the rows of the page, by id.
func parityRows(t *testing.T) map[string]parityRow {
	t.Helper()
	page, err := os.ReadFile(parityPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]parityRow{}
	for line := range strings.Lines(string(page)) {
		row, ok := parseRow(line)
		if !ok {
			continue
		}
		if _, duplicate := rows[row.id]; duplicate {
			t.Errorf("%s has two rows %s", parityPage, row.id)
		}
		rows[row.id] = row
	}
	return rows
}

// testFunctions returns the test functions of the repository by name. Packages may share a name.
func testFunctions(t *testing.T) map[string][]*ast.FuncDecl {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]*ast.FuncDecl{}
	for _, name := range strings.Fields(string(out)) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = append(tests[fn.Name.Name], fn)
			}
		}
	}
	return tests
}

// provesNothing says why a test function proves nothing: it is empty, or it may be skipped. It
// returns "" for other functions. Skips that depend on an environment variable do not count: they
// are in functions of internal/suite, which report them.
func provesNothing(fn *ast.FuncDecl) string {
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
	rows, tests := parityRows(t), testFunctions(t)
	for prefix, n := range rowCounts {
		for i := 1; i <= n; i++ {
			id := prefix + strconv.Itoa(i)
			row, found := rows[id]
			if !found {
				t.Errorf("%s has no row %s", parityPage, id)
				continue
			}
			checkRow(t, row, tests)
			delete(rows, id)
		}
	}
	for id := range rows {
		t.Errorf("%s: there must be no row %s", parityPage, id)
	}
}

// checkRow checks that a row names tests that exist and prove something, or gives a reason.
func checkRow(t *testing.T, row parityRow, tests map[string][]*ast.FuncDecl) {
	t.Helper()
	switch row.relation {
	case "kept", "better", "otherwise", "absent":
		if len(row.tests) == 0 {
			t.Errorf("%s (%s) names no test", row.id, row.text)
		}
	case "not here":
		if len(row.tests) > 0 {
			t.Errorf("%s is not here, but names the tests %v", row.id, row.tests)
		}
		if len(strings.Fields(row.text)) < 5 {
			t.Errorf("%s is not here, but gives no reason", row.id)
		}
	default:
		t.Errorf("%s: the relation %q must be kept, better, otherwise, absent or not here", row.id, row.relation)
	}
	if row.text == "" {
		t.Errorf("%s has no text", row.id)
	}
	for _, name := range row.tests {
		if len(tests[name]) == 0 {
			t.Errorf("%s names %s, which does not exist", row.id, name)
		}
		for _, fn := range tests[name] {
			if reason := provesNothing(fn); reason != "" {
				t.Errorf("%s names %s, which %s", row.id, name, reason)
			}
		}
	}
}

func TestParityRowsAreRecognized(t *testing.T) {
	for line, want := range map[string]string{
		"| A1 | kept | What it does | `TestRecord`, `TestOther` |": "A1 kept [TestRecord TestOther]",
		"| WC28 | not here | A cell with `a|b`, no test |  |\n":    "WC28 not here []",
		"| WC28 | not here | A reason of more than five words | |": "WC28 not here []",
		"| Row | Relation | What tracesmith does | Tests |":        "",
		"| A1 | kept | What it does |":                             "",
	} {
		got := ""
		if row, ok := parseRow(line); ok {
			got = strings.Join([]string{row.id, row.relation, "[" + strings.Join(row.tests, " ") + "]"}, " ")
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
	for body, want := range map[string]string{
		"t.Log(1)": "", "": "is empty", `if x { t.Skip("no") }`: "skips",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc TestX(t *T) {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := provesNothing(file.Decls[0].(*ast.FuncDecl)); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
