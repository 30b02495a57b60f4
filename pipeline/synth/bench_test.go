package synth

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// healthy returns a repository with the given files.
func healthy(t *testing.T, name, entrypoint string, files map[string]string) Repo {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	snapshot, err := workspace.FromFS(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	return Repo{Tree: snapshot, Task: schemas.Task{InstanceID: name, Repo: "own/" + name, Entrypoint: entrypoint, Workdir: schemas.DefaultWorkdir}}
}

func bubblewrap(t *testing.T) env.Driver {
	t.Helper()
	driver, err := env.Drivers.Build("bubblewrap", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// benchOf opens a bench of a repository.
func benchOf(t *testing.T, r Repo) *bench {
	t.Helper()
	c, err := parseCommand(r.Task.Entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBench(t.Context(), bubblewrap(t), env.SandboxSpec{Workdir: r.Task.Workdir}, r.Tree, c, &compiledCode{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.close(t.Context()) })
	return b
}

const calc = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"

func TestBenchReplacesFilesAndListsLeftovers(t *testing.T) {
	b := benchOf(t, healthy(t, "calc", "python -m pytest -q", map[string]string{
		"calc.py": calc,
		"test_calc.py": `import os
from calc import add, sub

def test_add():
    assert add(1, 2) == 3

def test_sub():
    open("left.txt", "w").close()
    os.makedirs("deep/er", exist_ok=True)
    if add(1, 1) != 2:
        os.unlink("keep.txt")
    assert sub(3, 1) == 2
`, "keep.txt": "keep"}))
	// The buggy file has the same size, so only its time shows that compiled code of the healthy file is stale.
	buggy := "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
	for range 2 {
		got, err := b.run(t.Context(), firstSeed, request{Timeout: 300, Describe: 2, Files: map[string]string{"calc.py": buggy}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"test_calc.py::test_add": "failed", "test_calc.py::test_sub": "passed"}, got.tests); diff != "" {
			t.Fatal(diff, got.Log)
		}
		if diff := cmp.Diff([]string{"deep", "deep/er", "keep.txt", "left.txt"}, got.Leftovers); diff != "" {
			t.Error(diff)
		}
		want := []Failure{{Test: "test_calc.py::test_add", Type: "AssertionError", Message: "assert -1 == 3\n +  where -1 = add(1, 2)",
			Text: "AssertionError: assert -1 == 3\n +  where -1 = add(1, 2)\n", Statement: "assert add(1, 2) == 3",
			Lines: []TestLine{{Function: "test_add", Code: "assert add(1, 2) == 3"}}, Values: []string{},
			Left: "-1", Right: "3", Scene: &Scene{Relation: relationEqual, Call: "add(1, 2)", Short: "add(...)", Want: "3", Imports: []string{"from calc import add"}, Before: []string{}, SelfContained: true},
			Frames: []Frame{{"test_calc.py", 5, "test_add"}}}}
		if diff := cmp.Diff(want, got.failures); diff != "" {
			t.Error(diff)
		}
		if got, err = b.run(t.Context(), "7", request{Timeout: 300, Shuffle: 3}); err != nil || got.tests["test_calc.py::test_add"] != "passed" || len(got.tests) != 2 {
			t.Fatalf("run of the healthy tree after a candidate: %v, %v", got.tests, err)
		}
	}
}

// Tests that kill the runner or write to its pipe make a candidate's run incomplete, but are not an
// infrastructure failure.
func TestBenchSurvivesTestsThatDisturbTheRunner(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"kill":  "os.kill(os.getppid(), 9)",
		"write": "[os.write(fd, b'{}\\n[1]\\nx\\n') for fd in range(3, 20) if os.path.exists('/proc/self/fd/%d' % fd)]",
		"close": "os.closerange(3, 100)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := benchOf(t, healthy(t, "calc", "python -m pytest -q", map[string]string{
				"calc.py": calc, "test_calc.py": "import os\nimport calc\n\ndef test_add():\n    if calc.add(1, 2) != 3:\n        " + line + "\n    assert calc.add(1, 2) == 3\n",
			}))
			got, err := b.run(t.Context(), firstSeed, request{Timeout: 1, Files: map[string]string{"calc.py": "def add(a, b):\n    return a - b\n"}})
			if err != nil || got.tests["test_calc.py::test_add"] == "passed" {
				t.Fatal(got.tests, err)
			}
			if got, err = b.run(t.Context(), firstSeed, request{Timeout: 60}); err != nil || got.tests["test_calc.py::test_add"] != "passed" {
				t.Fatalf("run of the healthy tree afterwards: %v, %v", got.tests, err)
			}
		})
	}
}
