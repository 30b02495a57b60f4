package synth

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestTaskNeedsPatchAndTests(t *testing.T) {
	valid := schemas.Task{Instructions: "It fails.", GoldPatch: "+", BugPatch: "-", Tests: schemas.TestSpec{FailToPass: []string{"a"}, PassToPass: []string{"b"}}}
	if why := unusableReason(valid); why != "" {
		t.Errorf("a valid task is refused: %s", why)
	}
	for want, change := range map[string]func(*schemas.Task){
		"patch is empty":   func(t *schemas.Task) { t.GoldPatch = "\n" },
		"no test fails":    func(t *schemas.Task) { t.Tests.FailToPass = nil },
		"no test passes":   func(t *schemas.Task) { t.Tests.PassToPass = nil },
		"every issue text": func(t *schemas.Task) { t.Instructions = " " },
		"its patch is em":  func(t *schemas.Task) { t.BugPatch = "" },
	} {
		task := valid
		change(&task)
		if why := unusableReason(task); !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// check.FindCheatOf notices that a patch can rewrite the tests of a task, unless Tests.Files
// protects them.
func TestRewritableTestsAreNoticed(t *testing.T) {
	r := healthy(t, "open", "python3 -m unittest discover -s lib -p 'check_*.py'", map[string]string{
		"lib/sums.py":       "def total(xs):\n    return sum(xs)\n\n\ndef count(xs):\n    return len(xs)\n",
		"lib/check_sums.py": "import unittest\nfrom sums import count, total\n\n\nclass Sums(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n\n    def test_count(self):\n        self.assertEqual(count([1, 2]), 2)\n",
	})
	cfg := configOf(t, t.TempDir(), r)
	w := &worker{factory: &factory{cfg: cfg}}
	s := &repoState{repo: r, driver: bubblewrap(t), spec: env.SandboxSpec{Workdir: r.Task.Workdir}}
	bug := "--- a/lib/sums.py\n+++ b/lib/sums.py\n@@ -1,2 +1,2 @@\n def total(xs):\n-    return sum(xs)\n+    return sum(xs[1:])\n"
	buggy, err := taskfile.Apply(r.Tree, []byte(bug))
	if err != nil {
		t.Fatal(err)
	}
	gold, err := w.gold(t.Context(), r.Tree, buggy)
	if err != nil {
		t.Fatal(err)
	}
	task := r.Task
	task.Instructions, task.GoldPatch, task.BugPatch, task.Tests = "total is wrong.", string(gold), bug, schemas.TestSpec{
		Method: schemas.VerifyUnittest, Files: taskfile.DefaultTestFiles(),
		FailToPass: []string{"check_sums.Sums.test_total"}, PassToPass: []string{"check_sums.Sums.test_count"},
	}
	v := verify.New(verify.Config{Driver: s.driver, Spec: s.spec, Store: cfg.Store})
	try := func() string {
		how, err := check.FindCheatOf(t.Context(), v, cfg.Store, task, buggy, check.Cheats[:1])
		if err != nil {
			t.Fatal(err)
		}
		return how
	}
	for range 2 {
		if how := try(); how != "a patch that only changes tests (lib/check_sums.py)" {
			t.Fatal(how)
		}
	}
	task.Tests.Files = append(task.Tests.Files, "check_*.py")
	if how := try(); how != "" {
		t.Errorf("with protected tests: %s", how)
	}
}

// tasks verify refuses a task whose fix stands in another place of the repository, so the factory does not release it.
func TestBugsWithACopyOfTheFixAreLeaks(t *testing.T) {
	const total = "def total(prices, rate):\n    return round(sum(prices) * (1 + rate) + handling_fee(prices), 2)\n"
	bug := "--- a/shop.py\n+++ b/shop.py\n@@ -1,2 +1,2 @@\n def total(prices, rate):\n-    return round(sum(prices) * (1 + rate) + handling_fee(prices), 2)\n+    return round(sum(prices) * (1 - rate) + handling_fee(prices), 2)\n"
	for _, c := range []struct{ other, text, want string }{
		{"old/notes.py", "def tax(rate):\n    return rate\n", ""},
		{"old/shop.py", "import math\n\n\n" + total, "old/shop.py:"},
	} {
		r := healthy(t, "shop", "python3 -m pytest -q", map[string]string{"shop.py": total, c.other: c.text})
		buggy, err := taskfile.Apply(r.Tree, []byte(bug))
		if err != nil {
			t.Fatal(err)
		}
		s := &repoState{repo: r}
		files, err := s.changedFiles(bug)
		if err != nil {
			t.Fatal(err)
		}
		where, err := otherCopy(r.Tree, buggy, files)
		if err != nil || !strings.HasPrefix(where, c.want) || (where == "") != (c.want == "") {
			t.Errorf("with %s: %q, %v; want %q", c.other, where, err, c.want)
		}
	}
}
