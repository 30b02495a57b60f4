package discover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/env/workspace/setup"
	"github.com/tracesmith/tracesmith/schemas"
)

// fakeSandbox returns the result of an attempt with the given commands.
type fakeSandbox func(commands string) (verify.Run, error)

func (w fakeSandbox) find(t *testing.T, files string) (Result, error) {
	t.Helper()
	return Find(t.Context(), Config{
		Interpreters: pythons,
		Try: func(_ context.Context, task schemas.Task, _ *workspace.Tree, _ verify.Variant) (verify.Run, error) {
			return w(strings.Join(append(task.Setup, task.Entrypoint), "; "))
		},
	}, schemas.Task{InstanceID: "a", Source: "dir"}, treeOf(t, files))
}

func passing(output string, statuses ...string) verify.Run {
	r := verify.Run{Result: env.Result{Output: []byte(output)}, Method: schemas.VerifyPytest, Tests: map[string]string{}}
	for i, s := range statuses {
		r.Tests["tests/test_a.py::test_"+string(rune('a'+i))] = s
	}
	return r
}

func unstarted(output string) verify.Run {
	return verify.Run{Result: env.Result{Output: []byte(output), ExitCode: 4}, Method: schemas.VerifyPytest,
		Finding: "the test runner did not finish (exit code 4): " + verify.Cause([]byte(output)), NoTestsStarted: true}
}

func uncollected(output string, files ...string) verify.Run {
	r := passing(output)
	r.Uncollected = files
	return r
}

const project = "-- pyproject.toml --\n[project]\nname = \"a\"\ndependencies = [\"six\"]\n"

// The search adds what the error of a plan says is missing.
func TestPlansAreRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		files string
		fails verify.Run // until the commands contain want
		want  string
	}{
		"an option":           {project + pytestFile, unstarted("usage: x\n__main__.py: error: unrecognized arguments: --timeout=3 --durations=2\n  rootdir: /testbed\n"), "pytest-timeout"},
		"required plugins":    {project + pytestFile, unstarted("ERROR: Missing required plugins: pytest-django, pytest-env>=1\n"), "pytest-django 'pytest-env>=1'"},
		"a module":            {project + pytestFile, uncollected("E   ModuleNotFoundError: No module named 'yaml'\n", "tests/test_a.py"), "PyYAML"},
		"a well-known module": {project + pytestFile, uncollected("E   ModuleNotFoundError: No module named 'more_itertools'\n", "tests/test_a.py"), "more-itertools"},
		"a dependency":        {"-- pyproject.toml --\n[project]\nname = \"a\"\ndependencies = [\"odd-one\"]\n" + pytestFile, uncollected("E   ModuleNotFoundError: No module named 'odd_one'\n", "tests/test_a.py"), "pytest odd-one"},
		"part of an extra":    {project + "[project.optional-dependencies]\ndiagrams = [\"railroad-diagrams\"]\n" + pytestFile + "import railroad\n", uncollected("E   ModuleNotFoundError: No module named 'railroad'\n", "tests/test_a.py"), "railroad-diagrams"},
		"a fixture":           {project + pytestFile, passing("E       fixture 'mocker' not found\n", "passed", "error"), "pytest-mock"},
		"async tests":         {project + pytestFile + "import anyio\n", passing("async def functions are not natively supported.\n", "passed", "failed"), "anyio"},
		"a version of pytest": {project + pytestFile, passing("E   pytest.PytestRemovedIn9Warning: no\n", "passed", "failed"), "'pytest<9'"},
		"a marker":            {project + pytestFile, passing("Failed: 'repeat' not found in `markers` con...\n", "passed", "failed"), "pytest-repeat"},
		"old settings":        {project + pytestFile, unstarted("Failed: [pytest] section in setup.cfg files is no longer supported, change to [tool:pytest] instead.\n"), "-q -c /dev/null --rootdir=."},
		"a requirements file": {project + pytestFile + "-- ci/test.in --\nodd-one\n", uncollected("E   ModuleNotFoundError: No module named 'odd_one'\n", "tests/test_a.py"), "odd-one"},
		"a private import":    {project + pytestFile, unstarted("ImportError: cannot import name 'notset' from '_pytest.monkeypatch'\n"), "'pytest<9'"},
		"a setting":           {project + pytestFile, unstarted("pytest.PytestConfigWarning: Unknown config option: asyncio_mode\n"), "pytest-asyncio"},
	} {
		found, err := fakeSandbox(func(commands string) (verify.Run, error) {
			if strings.Contains(commands, c.want) {
				return passing("", "passed"), nil
			}
			return c.fails, nil
		}).find(t, c.files)
		if err != nil || len(found.Attempts) != 2 {
			t.Errorf("%s: %v, %v", name, err, found.Attempts)
		}
	}
}

// Anyone can register a package with the name of a module. Such names are not installed, even if the tests import them.
func TestUnknownModulesAreNotInstalled(t *testing.T) {
	_, err := fakeSandbox(func(commands string) (verify.Run, error) {
		if strings.Contains(commands, "evil") {
			t.Errorf("installs it: %s", commands)
		}
		return uncollected("E   ModuleNotFoundError: No module named 'evil'\n", "tests/test_a.py"), nil
	}).find(t, project+pytestFile+"import evil\n")
	none, ok := errors.AsType[*NotFoundError](err)
	if !ok || none.Attempts[0].Error != "ModuleNotFoundError: No module named 'evil'" || !strings.Contains(err.Error(), "Nothing was installed for the missing modules evil, because") {
		t.Error(err)
	}
}

// A module of the repository itself is never installed from a registry.
func TestOwnModulesAreNotInstalled(t *testing.T) {
	_, err := fakeSandbox(func(commands string) (verify.Run, error) {
		if strings.Contains(commands, "PyYAML") {
			t.Errorf("installs it: %s", commands)
		}
		return uncollected("E   ModuleNotFoundError: No module named 'yaml'\n", "tests/test_a.py"), nil
	}).find(t, project+"-- lib/yaml/__init__.py --\n"+pytestFile+"import yaml\n")
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Error(err)
	}
}

// If no plan works, the error lists every attempt with its cause.
func TestFailuresAreListed(t *testing.T) {
	_, err := fakeSandbox(func(commands string) (verify.Run, error) {
		if strings.Contains(commands, "-e .") {
			return verify.Run{}, &setup.CommandError{ExitCode: 1, Output: "error: no compiler\n"}
		}
		return unstarted("ImportError while loading conftest '/testbed/conftest.py'.\nE   ImportError: broken\n  rootdir: /testbed\n"), nil
	}).find(t, project+pytestFile)
	none, ok := errors.AsType[*NotFoundError](err)
	if !ok || len(none.Attempts) != 3 {
		t.Fatal(err)
	}
	for _, want := range []string{
		"was found. These plans were tried:", "1. Python 3.11.2, uv pip install -e . pytest; python3 -m pytest -q (from pyproject.toml)",
		"a command ended with exit code 1: error: no compiler", "2. Python 3.12.1", "/testbed/conftest.py: ImportError: broken",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "rootdir") {
		t.Error(err)
	}
}

// No plan can add a module that is missing in the checkout's own tests.
func TestMissingTestModuleEndsTheSearch(t *testing.T) {
	_, err := fakeSandbox(func(string) (verify.Run, error) {
		return uncollected("E   ModuleNotFoundError: No module named 'tests.helper'\n", "tests/test_a.py"), nil
	}).find(t, project+pytestFile)
	if none, ok := errors.AsType[*NotFoundError](err); !ok || len(none.Attempts) != 1 || !strings.HasSuffix(err.Error(), "'tests.helper': the checkout lacks tests/helper.py, which its tests import") {
		t.Error(err)
	}
}

// If tests cannot be collected, the search first leaves out files outside of the test directories, then a few files.
func TestPlansAreNarrowed(t *testing.T) {
	files := project + pytestFile
	for _, n := range []string{"b", "c", "d", "e"} {
		files += "-- tests/test_" + n + ".py --\n"
	}
	files += "-- examples/test_x.py --\n"
	found, err := fakeSandbox(func(commands string) (verify.Run, error) {
		switch {
		case strings.HasSuffix(commands, "-q tests --ignore=tests/test_b.py"):
			return passing("", "passed", "passed"), nil
		case strings.HasSuffix(commands, "-q tests"):
			return uncollected("E   OSError: b\n", "tests/test_b.py"), nil
		}
		return uncollected("E   OSError: x\n", "examples/test_x.py", "tests/test_b.py"), nil
	}).find(t, files)
	if err != nil || found.Task.Entrypoint != "python3 -m pytest -q tests --ignore=tests/test_b.py" {
		t.Errorf("%v: %v", err, found.Attempts)
	}
}

// A test whose id is reported twice cannot judge a patch.
func TestTestsWithSameIDAreLeftOut(t *testing.T) {
	found, err := fakeSandbox(func(commands string) (verify.Run, error) {
		if strings.HasSuffix(commands, "-q --deselect=tests/test_a.py::test_b") {
			return passing("", "passed", "passed", "passed"), nil
		}
		r := passing("", "passed", "passed", "passed", "passed")
		r.Finding, r.Duplicates = "test reported twice: tests/test_a.py::test_b", []string{"tests/test_a.py::test_b"}
		return r, nil
	}).find(t, project+pytestFile)
	if err != nil || len(found.Attempts) != 2 || found.Why != "from pyproject.toml; left out 1 test whose id is not unique, such as tests/test_a.py::test_b" {
		t.Errorf("%v: %v, %s", err, found.Attempts, found.Why)
	}
}

// The plan with which most tests pass wins, even if it is not the last.
func TestTheBestPlanWins(t *testing.T) {
	n := 0
	found, err := fakeSandbox(func(string) (verify.Run, error) {
		if n++; n == 2 {
			return passing("", "passed", "passed", "failed"), nil
		}
		return passing("", "passed", "failed", "failed"), nil
	}).find(t, project+"[dependency-groups]\ntest = [\"attrs\"]\n"+pytestFile)
	if err != nil || len(found.Attempts) < 3 || found.Task.Entrypoint != found.Attempts[1].Entrypoint || strings.Join(found.Task.Setup, ";") != strings.Join(found.Attempts[1].Setup, ";") {
		t.Errorf("%v: %v", err, found)
	}
}

// A test that never ends, for example because it waits for the network, does not hide the others.
func TestHangingTestsAreLeftOut(t *testing.T) {
	for name, last := range map[string]string{
		"a test": "-q --deselect=tests/test_a.py::test_z", "a file": "-q --deselect=tests/test_a.py::test_z --ignore=tests/test_a.py",
	} {
		found, err := fakeSandbox(func(commands string) (verify.Run, error) {
			r := passing("", "passed")
			if !strings.HasSuffix(commands, last) {
				r.TimedOut, r.Finding, r.Running, r.Wall = true, "the tests ran out of time", "tests/test_a.py::test_z", time.Minute
				r.Seconds = map[string]float64{"tests/test_a.py::test_a": 1}
			}
			return r, nil
		}).find(t, project+pytestFile)
		if err != nil || found.Slow || !strings.HasSuffix(found.Task.Entrypoint, last) {
			t.Errorf("%s: %v, %v", name, err, found.Attempts)
		}
	}
}

// Another plan would not make the tests faster.
func TestSlowTestsEndTheSearch(t *testing.T) {
	found, err := fakeSandbox(func(string) (verify.Run, error) {
		r := passing("", "passed")
		r.TimedOut, r.Finding = true, "the tests ran out of time"
		return r, nil
	}).find(t, project+pytestFile)
	if err != nil || !found.Slow || len(found.Attempts) != 1 {
		t.Error(found, err)
	}
}

// A repository with untrusted results is refused: no other plan may hide the reason.
func TestUntrustedResultsEndTheSearch(t *testing.T) {
	n := 0
	_, err := fakeSandbox(func(string) (verify.Run, error) {
		if n++; n > 1 {
			return passing("", "passed"), nil
		}
		r := passing("1 passed in 1s", "passed")
		r.Finding, r.Untrusted = "pluggy was loaded from the workspace", true
		return r, nil
	}).find(t, project+pytestFile)
	if none, ok := errors.AsType[*NotFoundError](err); !ok || len(none.Attempts) != 1 || none.Attempts[0].Error != "the results of the tests cannot be trusted: pluggy was loaded from the workspace" {
		t.Error(err)
	}
}

func TestMissingToolsAreNamed(t *testing.T) {
	for output, want := range map[string]string{
		"error: command 'gcc' failed: No such file or directory":              "gcc",
		"unable to execute 'x86_64-linux-gnu-gcc': No such file or directory": "x86_64-linux-gnu-gcc",
		"a.c:1:10: fatal error: Python.h: No such file or directory":          "Python.h (the headers of Python, such as the package python3-dev)",
		"error: can't find Rust compiler":                                     "the Rust compiler",
		"bash: line 3: cmake: command not found":                              "cmake",
		"error: command '/usr/bin/gcc' failed with exit code 1":               "",
	} {
		o, err := judge(verify.Run{}, &setup.CommandError{ExitCode: 1, Output: output})
		got := strings.HasPrefix(o.cause, "the build needs "+want+", which this machine does not have: ")
		if err != nil || got != (want != "") {
			t.Errorf("%s: %s, %v", output, o.cause, err)
		}
	}
}

func TestPlansWithFewPassingTestsAreRefused(t *testing.T) {
	_, err := fakeSandbox(func(string) (verify.Run, error) {
		return passing("E   AssertionError: no extension\n", strings.Fields("passed"+strings.Repeat(" error", 11))...), nil
	}).find(t, project+pytestFile)
	if _, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(err.Error(), "11 of 12 tests do not pass, the first: tests/test_a.py::test_b error: AssertionError: no extension") {
		t.Error(err)
	}
}

func TestOtherErrorsEndTheSearch(t *testing.T) {
	broken := errors.New("no sandbox")
	n := 0
	_, err := fakeSandbox(func(string) (verify.Run, error) { n++; return verify.Run{}, broken }).find(t, project+pytestFile)
	if !errors.Is(err, broken) || n != 1 {
		t.Error(n, err)
	}
	if _, err := (fakeSandbox(nil)).find(t, project); err == nil || !strings.Contains(err.Error(), "no test files") {
		t.Error(err)
	}
}

func TestDatesLimitPackages(t *testing.T) {
	found, err := Find(t.Context(), Config{
		Interpreters: pythons, Newest: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC),
		Try: func(context.Context, schemas.Task, *workspace.Tree, verify.Variant) (verify.Run, error) {
			return passing("", "passed"), nil
		},
	}, schemas.Task{InstanceID: "a"}, treeOf(t, project+pytestFile))
	if err != nil || !strings.Contains(found.Task.Setup[1], " UV_EXCLUDE_NEWER=2024-05-06T00:00:00Z") {
		t.Error(found.Task.Setup, err)
	}
}
