package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tracesmith/tracesmith/schemas"
)

// fixtureWithHelpers returns the fixture with tests that use a helper module and data files.
func fixtureWithHelpers(t *testing.T) project {
	p := fixture(t)
	p = p.edited("helpers/__init__.py", "def check(got, want):\n    assert got == want\n")
	p = p.edited("data/expected.json", `{"sum": 450}`+"\n")
	p = p.edited("shop/tests/util.py", "ITEMS = [(1, 250), (2, 100)]\n").edited("shop/tests/__init__.py", "")
	p = p.edited("shop/tests/test_more.py", "from shop.prices import total\nfrom shop.tests.util import ITEMS\n\ndef test_more():\n    assert total(ITEMS) == 450\n")
	return p.edited("tests/test_prices.py", `
import json

from helpers import check
from shop.prices import discount, total


def test_empty():
    assert total([]) == 0


def test_total():
    with open("data/expected.json") as f:
        want = json.load(f)
    for name in want:
        assert total([(1, 250), (2, 100)]) == want[name]
    check(total([(1, 250), (2, 100)]), 450)


def test_discount():
    assert discount(1000, 10) == 900
`)
}

var helpersSpec = schemas.TestSpec{
	Method: schemas.VerifyPytest, Files: []string{"tests/**", "test_*.py", "*_test.py", "conftest.py"},
	FailToPass: []string{"tests/test_prices.py::test_total", "shop/tests/test_more.py::test_more"},
	PassToPass: []string{"tests/test_prices.py::test_empty"},
}

// Helpers and data of tests are restored from the base tree, so a patch that empties them resolves the task
// only if it also fixes the program.
func TestHelpersAndDataOfTestsAreRestored(t *testing.T) {
	v, base := verifier(t), fixtureWithHelpers(t)
	fix := honest(t).text(t, "shop/prices.py")
	cheats := base.edited("helpers/__init__.py", "def check(got, want):\n    pass\n").
		edited("data/expected.json", "{}\n").edited("shop/tests/util.py", "ITEMS = []\n")
	for name, c := range map[string]struct {
		to       project
		want     string
		restored []string
		refused  []string
	}{
		"helper, data and items":            {cheats, schemas.VerifiedFail, []string{"data/expected.json", "helpers/__init__.py", "shop/tests/util.py"}, nil},
		"the same and the fix":              {cheats.edited("shop/prices.py", fix), schemas.VerifiedPass, []string{"data/expected.json", "helpers/__init__.py", "shop/tests/util.py"}, nil},
		"the fix":                           {base.edited("shop/prices.py", fix), schemas.VerifiedPass, nil, nil},
		"a module that shadows the helpers": {base.edited("lib/helpers.py", "def check(got, want):\n    pass\n"), schemas.VerifiedFail, nil, []string{"lib/helpers.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch, sha := patchTo(t, v, base, c.to)
			got, err := v.Verify(t.Context(), task(base, pytestEntry, helpersSpec), base, patch, sha)
			if err != nil || got.Status != c.want || !slices.Equal(got.Restored, c.restored) || !slices.Equal(got.Refused, c.refused) {
				t.Errorf("%s (%s), restored %q, refused %q, %v\n%s", got.Status, got.Reason, got.Restored, got.Refused, err, got.Log)
			}
		})
	}
}

// A script whose exit code decides is restored from the base tree, unless it may be the program itself.
func TestChecksByExitCodeAreRestored(t *testing.T) {
	v, base := verifier(t), fixture(t)
	base = base.edited("check.py", "from shop.prices import total\n\nassert total([(1, 250), (2, 100)]) == 450\n").
		edited("main.py", "import sys\n\nsys.exit(sum([1, 2]) != 4)\n")
	exit := schemas.TestSpec{Method: schemas.VerifyExitCode, Files: []string{"tests/**"}}
	for name, c := range map[string]struct {
		entry, file, text, want string
	}{
		"the assertion deleted": {"python3 check.py", "check.py", "from shop.prices import total\n", schemas.VerifiedFail},
		"as a module":           {"python3 -m check", "check.py", "", schemas.VerifiedFail},
		"the fix":               {"python3 check.py", "shop/prices.py", honest(t).text(t, "shop/prices.py"), schemas.VerifiedPass},
		"the whole program":     {"python3 main.py", "main.py", "import sys\n\nsys.exit(sum([1, 3]) != 4)\n", schemas.VerifiedPass},
		"an early end":          {"python3 check.py", "shop/prices.py", "import os\nos._exit(0)\n", schemas.VerifiedFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch, sha := patchTo(t, v, base, base.edited(c.file, c.text))
			got, err := v.Verify(t.Context(), task(base, c.entry, exit), base, patch, sha)
			if err != nil || got.Status != c.want {
				t.Errorf("%s (%s), restored %q, %v\n%s", got.Status, got.Reason, got.Restored, err, got.Log)
			}
			if doubtful := c.file == "main.py"; doubtful != (len(got.Warnings) > 0) {
				t.Errorf("warnings: %q", got.Warnings)
			}
		})
	}
}

// Files of the program keep the changes of the patch, even if tests import them.
func TestProgramFilesImportedByTestsStayPatched(t *testing.T) {
	a, err := txtar.ParseFile("testdata/layouts.txtar")
	if err != nil {
		t.Fatal(err)
	}
	layouts := map[string]map[string]string{} // name -> files
	var names []string
	for _, f := range a.Files {
		name, file, _ := strings.Cut(f.Name, "/")
		if layouts[name] == nil {
			layouts[name] = map[string]string{}
			names = append(names, name)
		}
		layouts[name][file] = string(f.Data)
	}
	for _, name := range names {
		files := layouts[name]
		var list, want, got []string
		for f := range files {
			if f != "WANT" && f != "GOLD" {
				list = append(list, f)
			}
		}
		slices.Sort(list)
		want = strings.Fields(files["WANT"])
		r := newRepoLayout(list, func(f string) string { return files[f] }, nil, nil, strings.Fields(files["GOLD"]))
		for _, f := range list {
			if r.protects(f) {
				got = append(got, f)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: protected (-want +got):\n%s", name, diff)
		}
	}
}

// Reading a table of thousands of strings takes time linear in its size. If it were quadratic,
// this test would exceed the time limit of all tests.
func TestATableOfStringsIsReadOnce(t *testing.T) {
	table := "TABLE = [\n" + strings.Repeat("    'a row of the table', 'and another',\n", 50_000) + "]\n"
	r := newRepoLayout([]string{"shop/table.py"}, func(string) string { return table }, nil, nil, nil)
	if _, found := r.programWords["a row of the table"]; !found {
		t.Error("the table was not read")
	}
}

// A patch may change an existing file with the name of a module that the test runner uses: only a new file
// can shadow a module that the tests used before the patch.
func TestModulesNamedLikeTheRunnersMayBeFixed(t *testing.T) {
	v, base := verifier(t), fixture(t)
	rates := "from shop.prices import total\n\n\ndef statistics(lines):\n    return total(lines) %s\n"
	base = base.edited("statistics.py", fmt.Sprintf(rates, "- 1")).
		edited("shop/prices.py", honest(t).text(t, "shop/prices.py")).
		edited("tests/test_statistics.py", "import runpy\n\n\ndef test_statistics():\n    assert runpy.run_path('statistics.py')['statistics']([(1, 2)]) == 2\n")
	spec := schemas.TestSpec{Method: schemas.VerifyPytest, Files: []string{"tests/**"}, FailToPass: []string{"tests/test_statistics.py::test_statistics"}}
	patch, sha := patchTo(t, v, base, base.edited("statistics.py", fmt.Sprintf(rates, "")))
	got, err := v.Verify(t.Context(), task(base, pytestEntry, spec), base, patch, sha)
	if err != nil || got.Status != schemas.VerifiedPass {
		t.Errorf("%s (%s), refused %q, %v\n%s", got.Status, got.Reason, got.Refused, err, got.Log)
	}
}
