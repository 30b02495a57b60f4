package lint

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	s := Names{
		Files: []string{"pkg/ledger.py"}, Functions: []string{"Book.settle_all", "get"}, Words: []string{"overdraft"},
		Output: "test_book.py::test_total\nassert Book().total() == 3\n",
	}
	for text, want := range map[string]string{
		"Book().total() gives 2, but 3 is expected.":                    "",
		"I get nothing back.":                                           "", // a plain word that is also a name
		"The bug is in pkg/ledger.py.":                                  "file",
		"Look at ledger.py.":                                            "file",
		"The module ledger is wrong.":                                   "module",
		"settle_all forgets an entry.":                                  "function",
		"It calls `get` wrongly.":                                       "function",
		"Book.get() is wrong.":                                          "function",
		"Line 14 is wrong.":                                             "line number",
		"It goes wrong on line number 3.":                               "line number",
		"See book.py:12.":                                               "line number",
		"The overdraft is not taken into account.":                      "changed identifier",
		"The line is wrong, three of four values are not there.":        "",
		"`python -m pytest -q` fails: 2 of 10 tests do not pass.":       "",
		"When I run this:\n\n    settle_all(3)\n\nit ends with `Oops`.": "function",
	} {
		found := Text(text, s)
		switch {
		case want == "" && len(found) > 0:
			t.Errorf("%q: found %v", text, found)
		case want != "" && (len(found) == 0 || found[0].Kind != want):
			t.Errorf("%q: found %v, want a %s", text, found, want)
		}
	}
	s.Output += "ledger.py: in settle_all, overdraft get\n"
	for _, text := range []string{"settle_all forgets an entry.", "The overdraft is not taken into account.", "The module ledger is wrong."} {
		if found := Text(text, s); len(found) > 0 {
			t.Errorf("%q: found %v, and the failing output names it", text, found)
		}
	}
}

func TestChangedWordsOccurOnOneSide(t *testing.T) {
	patch := "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n def f(first, other):\n-    return first if first else limit\n+    return other if first else limit\n"
	if got := strings.Join(ChangedWords([]byte(patch)), " "); got != "other" {
		t.Errorf("changed words %q, want other", got)
	}
}

// A parser's message about line 2 of its input is not about the program.
func TestLineNumbersOfTheOutputAreNotFound(t *testing.T) {
	n := Names{Output: "ExpatError: mismatched tag: line 2, column 5"}
	for text, want := range map[string]int{"It raises `mismatched tag: line 2, column 5`.": 0, "See line 3.": 1, "It says line 2. Look at line 14 of the program.": 1} {
		if found := Text(text, n); len(found) != want {
			t.Errorf("%q: found %v, want %d", text, found, want)
		}
	}
}

// A path that only ends in the file's path, such as the test file's, does not name the file.
func TestLongerFileNamesAreNotFound(t *testing.T) {
	n := Names{Files: []string{"bank.py"}, Output: "test_bank.py::test_total fails"}
	if found := Text("test_bank.py fails.", n); len(found) > 0 {
		t.Errorf("the test file gives away %v", found)
	}
	for _, text := range []string{"Look at bank.py.", "See /testbed/bank.py", "bank.py is wrong"} {
		if found := Text(text, n); len(found) != 1 || found[0].Kind != File {
			t.Errorf("%q: found %v, want the file", text, found)
		}
	}
}

// An import of the package, or of the only module of the program, does not say where the bug is.
func TestNameOfTheProgramGivesNothingAway(t *testing.T) {
	for _, c := range []struct {
		file, text string
		paths      []string
		want       int
	}{
		{"src/rates/rates.py", "from rates import convert", nil, 0},
		{"rates/core.py", "from rates import convert", nil, 0},
		{"rates/core.py", "from rates.core import convert", nil, 1},
		{"src/rates/rates.py", "See rates.py.", nil, 1},
		{"rates.py", "from rates import convert", []string{"rates.py", "setup.py", "tests/helpers.py", "docs/conf.py", "README.md"}, 0},
		{"rates.py", "from rates import convert", []string{"rates.py", "fees.py"}, 1},
		{"rates.py", "from rates import convert", nil, 1},
		{"rates.py", "The bug is in rates.py", []string{"rates.py"}, 1},
	} {
		if found := Text(c.text, Names{Files: []string{c.file}, Paths: c.paths}); len(found) != c.want {
			t.Errorf("%s of %v, %q: found %v, want %d", c.file, c.paths, c.text, found, c.want)
		}
	}
}
