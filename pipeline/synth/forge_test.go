package synth

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// The verifier must see the same tests fail as the factory. A few tests with other verdicts are unreliable.
// If there are more, or if the verifier accepts an empty patch, no task of the repository can be used.
func TestVerifierMustSeeTheSameTestsFail(t *testing.T) {
	body, kept := "from calc import add\n", []string(nil)
	for i := range 6 {
		body += fmt.Sprintf("\ndef test_%d():\n    assert add(%d, 1) == %d\n", i, i, i+1)
		kept = append(kept, fmt.Sprintf("test_calc.py::test_%d", i))
	}
	r := healthy(t, "calc", "python -m pytest -q", map[string]string{"calc.py": calc, "test_calc.py": body})
	bug := "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a + b\n+    return a + b - (a == 1)\n"
	buggy, err := taskfile.Apply(r.Tree, []byte(bug))
	if err != nil {
		t.Fatal(err)
	}
	s := &repoState{repo: r, driver: bubblewrap(t), spec: env.SandboxSpec{Workdir: r.Task.Workdir}, kept: kept, command: command{runner: runPytest}}
	for name, c := range map[string]struct {
		seen       []string // the tests that failed in the factory's runs
		fail, pass []string // the lists of the task
		want       string
		unreliable []string
	}{
		"the same":       {kept[1:2], kept[1:2], kept[2:], "", nil},
		"one more":       {kept[1:3], kept[1:3], kept[3:], "", kept[2:3]},
		"one less":       {nil, kept[1:2], kept[2:], "", kept[1:2]},
		"many more":      {kept[1:6], kept[1:6], kept[:1], "the verifier sees other tests fail than the factory, the first is " + kept[2], nil},
		"no failed test": {kept[:1], kept[:1], kept[2:], "an empty patch resolves it", nil},
	} {
		cfg := configOf(t, t.TempDir(), r)
		j, err := openJournal(t.TempDir(), settings{})
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{factory: &factory{cfg: cfg, journal: j}}
		task := r.Task
		task.Tests = schemas.TestSpec{Method: schemas.VerifyPytest, Files: taskfile.DefaultTestFiles(), FailToPass: c.fail, PassToPass: c.pass}
		got, err := w.tryEmptyPatch(t.Context(), s, &Trial{Repo: "calc", Key: "k", FailToPass: c.seen}, task, buggy)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		var unreliable []string
		for id := range w.unreliable(&repoState{repo: Repo{Task: schemas.Task{InstanceID: "calc"}}}) {
			unreliable = append(unreliable, id)
		}
		if slices.Sort(unreliable); strings.Join(unreliable, " ") != strings.Join(c.unreliable, " ") {
			t.Errorf("%s: unreliable tests %q, want %q", name, unreliable, c.unreliable)
		}
	}
}
