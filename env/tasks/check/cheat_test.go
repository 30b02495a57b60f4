package check

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

var mixed = project{
	"shop.py": shop["shop.py"],
	"tests/test_shop.py": `import unittest

import pytest
from shop import count, total


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)


class TestCount:
    class TestMany:
        @pytest.mark.parametrize("n", [0, 3])
        def test_count(self, n):
            assert count([1] * n) == n


def test_nothing():
    assert total([]) == 0
`,
	"conftest.py":  "import pytest\n",
	"test_more.py": "def test_more():\n    assert True\n",
}

func mixedTask() schemas.Task {
	return schemas.Task{
		Source: "test", InstanceID: "mixed", Instructions: "total is wrong.", Entrypoint: "python3 -m pytest -q", Workdir: schemas.DefaultWorkdir,
		Tests: schemas.TestSpec{
			Method: schemas.VerifyPytest, Files: []string{"tests/**", "conftest.py", "pytest.ini", "pyproject.toml"},
			FailToPass: []string{"tests/test_shop.py::Prices::test_total"},
			PassToPass: []string{
				"tests/test_shop.py::TestCount::TestMany::test_count[0]", "tests/test_shop.py::TestCount::TestMany::test_count[3]",
				"tests/test_shop.py::test_nothing",
			},
		},
	}
}

// Each cheat makes a plain run of the tests pass. The verifier must not accept any cheat as a fix, whether it restores
// the changed files or refuses them.
func TestFactoryCheatsDoNotFoolTheVerifier(t *testing.T) {
	suite.Factory.Require(t)
	settings := mixed.with(project{"pyproject.toml": "[project]\nname = 'shop'\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n"})
	for name, c := range map[string]struct {
		tree  project
		files []string // protected files; nil for those of the task
		only  string   // run only the cheats whose description contains this
	}{
		"restored": {tree: mixed}, "refused": {tree: mixed, files: []string{"nothing"}},
		"settings": {tree: settings, only: "a setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, task, tree := config(t), mixedTask(), c.tree.tree(t)
			if c.files != nil {
				task.Tests.Files = c.files
			}
			v := cfg.verifier()
			base, err := cfg.Store.Base(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			list, err := cheats(t.Context(), cfg.Store, task, base)
			if err != nil || len(list) != 5 {
				t.Fatalf("%d cheats, %v", len(list), err)
			}
			for _, cheat := range list {
				if !strings.Contains(cheat.what, c.only) {
					continue
				}
				t.Run(cheat.what, func(t *testing.T) {
					t.Parallel()
					final, err := cfg.Store.Edit(t.Context(), base, cheat.files)
					if err != nil {
						t.Fatal(err)
					}
					patch, err := cfg.Store.DiffTrees(t.Context(), base, final)
					if err != nil {
						t.Fatal(err)
					}
					plain, err := v.Observe(t.Context(), task, tree, patch, verify.Variant{})
					if err != nil || plain.ExitCode != 0 {
						t.Errorf("a plain run ends with %d, %v\n%s", plain.ExitCode, err, plain.Output)
					}
					got, err := v.Verify(t.Context(), task, tree, patch, final)
					changedFiles := slices.Sorted(maps.Keys(cheat.files))
					if err != nil || resolved(got) || got.Reason == "" || len(got.Restored)+len(got.Refused) == 0 {
						t.Errorf("%v: %+v, %v", changedFiles, got, err)
					}
					changed, refused, err := v.EffectOf(t.Context(), task, tree, patch)
					if err != nil || changed != (len(got.Refused) > 0) || !slices.Equal(refused, got.Refused) {
						t.Errorf("%v: changed %v, refused %v; the verdict refuses %v, %v", changedFiles, changed, refused, got.Refused, err)
					}
				})
			}
		})
	}
}

// FindCheat detects unprotected tests: a patch that changes only these tests resolves the task.
func TestUnprotectedTestsAreReported(t *testing.T) {
	unprotected := project{
		"lib/shop.py":       shop["shop.py"],
		"lib/check_shop.py": "import unittest\nfrom shop import total\n\n\nclass Shop(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n",
	}
	task := mixedTask()
	task.Entrypoint, task.Tests = "python3 -m unittest discover -s lib -p 'check_*.py'", schemas.TestSpec{
		Method: schemas.VerifyUnittest, Files: []string{"tests/**"}, FailToPass: []string{"check_shop.Shop.test_total"},
	}
	cfg := config(t)
	got, err := FindCheat(t.Context(), cfg.verifier(), cfg.Store, task, unprotected.tree(t))
	if want := "a patch that only changes tests (lib/check_shop.py)"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	task.Tests.Files = []string{"check_*.py"}
	if got, err = FindCheat(t.Context(), cfg.verifier(), cfg.Store, task, unprotected.tree(t)); err != nil || got != "" {
		t.Errorf("protected: %q, %v", got, err)
	}
}

func TestOptionsAreAddedToExistingSettings(t *testing.T) {
	for name, c := range map[string]struct {
		text map[string]string
		want map[string]string
	}{
		"none":    {nil, map[string]string{"pytest.ini": "[pytest]\naddopts = --deselect=t.py::a \n"}},
		"ini":     {map[string]string{"pytest.ini": "[pytest]\nminversion = 6\n"}, map[string]string{"pytest.ini": "[pytest]\naddopts = --deselect=t.py::a \nminversion = 6\n"}},
		"options": {map[string]string{"setup.cfg": "[tool:pytest]\naddopts = -q\n"}, map[string]string{"setup.cfg": "[tool:pytest]\naddopts = --deselect=t.py::a -q\n"}},
		"toml":    {map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\naddopts = \"-q\"\n"}, map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\naddopts = \"--deselect=t.py::a -q\"\n"}},
		"other":   {map[string]string{"tox.ini": "[tox]\n"}, map[string]string{"pytest.ini": "[pytest]\naddopts = --deselect=t.py::a \n"}},
	} {
		got := map[string]string{}
		for file, text := range deselect(c.text, []string{"t.py::a[x y]"}) {
			got[file] = string(text)
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
