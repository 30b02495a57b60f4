package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// If tests cannot be collected, the error says why and what to do about it.
func TestBaseSaysWhyTestsCannotBeCollected(t *testing.T) {
	t.Parallel()
	repo := func(files ...string) project {
		p := project{"calc.py": "def add(a, b):\n    return a + b\n", "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"}
		for i := 0; i < len(files); i += 2 {
			p[files[i]] = files[i+1]
		}
		return p
	}
	const pytest, unittest = "python3 -m pytest -q", "python3 -m unittest discover -s tests"
	for name, c := range map[string]struct {
		entrypoint string
		repo       project
		want       []string
	}{
		"import": {pytest, repo("tests/test_calc.py", "import no_such.library\n"),
			[]string{"tests/test_calc.py: ModuleNotFoundError: No module named 'no_such'", `"python3 -m pip install no_such"`}},
		"in the program": {pytest, repo("calc.py", "import no_such\n"), []string{"tests/test_calc.py: ModuleNotFoundError: No module named 'no_such'"}},
		"cause":          {pytest, repo("calc.py", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('no database') from e\n"), []string{"tests/test_calc.py: RuntimeError: no database"}},
		"own exception":  {pytest, repo("tests/test_calc.py", "class Gone(Exception): pass\nraise Gone('not here')\n"), []string{"Gone: not here"}},
		"color":          {pytest + " --color=yes --tb=native", repo("tests/test_calc.py", "import no_such\n"), []string{"test_calc.py: ModuleNotFoundError: No module named 'no_such')"}},
		"one line":       {pytest + " --tb=line", repo("tests/test_calc.py", "import no_such\n"), []string{"tests/test_calc.py: ModuleNotFoundError: No module named 'no_such'"}},
		"syntax":         {pytest, repo("tests/test_calc.py", "def test_add(:\n    pass\n"), []string{"SyntaxError: invalid syntax", "test_calc.py, line 1"}},
		"conftest":       {pytest, repo("conftest.py", "import no_such\n"), []string{"conftest.py: ModuleNotFoundError: No module named 'no_such'"}},
		"option":         {pytest, repo("pytest.ini", "[pytest]\naddopts = --no-such-option\n"), []string{"unrecognized arguments: --no-such-option", "-o addopts="}},
		"plugin":         {pytest, repo("pytest.ini", "[pytest]\naddopts = -p no_such\n"), []string{`Error importing plugin "no_such": No module named 'no_such'`}},
		"required":       {pytest, repo("pytest.ini", "[pytest]\nrequired_plugins = pytest-no-such\n"), []string{"Missing required plugins: pytest-no-such", `"python3 -m pip install pytest-no-such"`}},
		"nowhere":        {pytest + " nowhere", repo(), []string{"file or directory not found: nowhere): correct the entrypoint"}},
		"no runner":      {"python3 -S -m pytest -q", repo(), []string{"No module named pytest", `"python3 -m pip install pytest"`}},
		"unittest":       {unittest, repo("tests/test_calc.py", "import unittest\nimport no_such\n"), []string{"test_calc: ModuleNotFoundError: No module named 'no_such'"}},
		"src": {pytest, project{"src/calc/__init__.py": "def add(a, b):\n    return a + b\n", "pyproject.toml": "[project]\nname = 'calc'\nversion = '1'\n",
			"tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"},
			[]string{"tests/test_calc.py: ModuleNotFoundError: No module named 'calc'", `"PYTHONPATH=src python3 -m pytest -q"`, `"python3 -m pip install --no-deps -e ."`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Base(t.Context(), config(t), schemas.Task{InstanceID: "calc", Entrypoint: c.entrypoint, Workdir: schemas.DefaultWorkdir}, c.repo.tree(t))
			if _, ok := errors.AsType[*verify.TaskError](err); !ok {
				t.Fatalf("not an error of the task: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
			for _, not := range []string{"rootdir", "\x1b", "\n"} {
				if strings.Contains(err.Error(), not) {
					t.Errorf("%v\nhas %q", err, not)
				}
			}
		})
	}
}
