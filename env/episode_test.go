package env_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestTaskChoosesTheWorkdir(t *testing.T) {
	f := open(t, func(c *env.Config) { c.Task.Workdir = "/srv/app" })
	f.reset(false)
	if got := f.step("bash", `{"command":"pwd; ls; ls -d /testbed"}`).Observation.Text; !strings.HasPrefix(got, "/srv/app\ncalc.py\ntest_calc.py\nls: cannot access '/testbed'") {
		t.Errorf("%q", got)
	}
	for _, c := range [][2]string{
		{"view", `{"path":"/srv/app/calc.py"}`}, {"edit", `{"path":"calc.py","old_code":"x + 1","new_code":"x * 2"}`},
		{"pdb", `{"command":"b calc.py:3 ;; c"}`}, {"grep", `{"pattern":"double","path":"."}`}, {"listdir", `{}`},
	} {
		if o := f.step(c[0], c[1]).Observation; o.IsError {
			t.Errorf("%s: %s", c[0], o.Text)
		}
	}
	if s := f.step("eval", `{}`).State; s.EvalPassed == nil || !*s.EvalPassed || s.Breakpoints[0].File != "calc.py" {
		t.Errorf("%+v", s)
	}
	if patch, _, err := f.Patch(t.Context()); err != nil || !strings.Contains(string(patch), "b/calc.py") {
		t.Errorf("%v %s", err, patch)
	}
}

// Every reset starts a sandbox with the same spec, and programs in it find the same state.
func TestResetsStartEqualSandboxes(t *testing.T) {
	var driver *countingDriver
	f := open(t, countSandboxes(&driver), func(c *env.Config) {
		c.Spec.Env = []string{"PROJECT=shop"}
		c.Task.Setup = []string{"pip install nothing"}
	})
	look := `{"command":"env | grep -v ^_= | sort; cat /proc/mounts | wc -l; ls -a . /tmp /home/user"}`
	var seen []string
	for range 3 {
		f.reset(false)
		seen = append(seen, f.step("bash", look).Observation.Text)
	}
	if seen[0] != seen[1] || seen[1] != seen[2] || !strings.Contains(seen[0], "PROJECT=shop\n") {
		t.Errorf("after three resets: %s", cmp.Diff(seen[0], seen[2]))
	}
	if d := cmp.Diff(driver.specs[0], driver.specs[2]); d != "" || len(driver.specs) != 3 {
		t.Errorf("%d starts: %s", len(driver.specs), d)
	}
	if d := cmp.Diff([]string{"pip install nothing"}, f.sess.Task.Setup); d != "" {
		t.Error(d)
	}
}

func TestPatchIncludesCreatedAndCommittedFiles(t *testing.T) {
	f := open(t)
	f.reset(false)
	f.step("bash", `{"command":"mkdir new; echo a >new/untracked; echo b >staged; git add staged; echo c >committed; git add committed; git commit -qm mine; `+
		`git rm -q test_calc.py; echo '*.log' >.gitignore; echo d >kept.log; chmod +x calc.py; ln -s calc.py link; printf '\\000\\001' >binary"}`)
	patch, _, err := f.Patch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"b/new/untracked", "b/staged", "b/committed", "b/.gitignore", "b/kept.log", "b/link", "new file mode 120000", "GIT binary patch",
		"diff --git a/test_calc.py b/test_calc.py\ndeleted file", "diff --git a/calc.py b/calc.py\nold mode 100644\nnew mode 100755",
	} {
		if !strings.Contains(string(patch), part) {
			t.Errorf("the patch lacks %q", part)
		}
	}
	if t.Failed() {
		t.Logf("%s", patch)
	}
}

// A step allocates no more after 320 steps than after 20, because it copies nothing from earlier
// steps.
func TestStepsDoNotCopyEarlierSteps(t *testing.T) {
	f := open(t, withTree(t, fstest.MapFS{"big.txt": {Data: []byte(strings.Repeat("a line of text\n", 2000)), Mode: 0o644}}))
	f.reset(false)
	bytes := func(steps int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			if o := f.step("view", `{"path":"big.txt"}`).Observation; o.IsError {
				t.Fatal(o.Text)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(steps)
	}
	bytes(20) // warm up the pools
	early := bytes(80)
	bytes(220)
	late := bytes(80)
	t.Logf("%d bytes per step early, %d late", early, late)
	if late > early+early/4 {
		t.Errorf("a step allocated %d bytes early and %d bytes late", early, late)
	}
}

// Only an evaluation runs the tests and reads their results. Later steps reuse the results for
// their state. The test's own tool listener does nothing with the sandbox, so these steps only
// collect their state.
func TestStepsReuseTheLastEvaluation(t *testing.T) {
	runs := 0
	f := open(t, func(c *env.Config) {
		c.Evaluate = func(ctx context.Context, sb env.Sandbox, task schemas.Task, limit time.Duration) (env.EvalReport, error) {
			runs++
			return verify.Eval(ctx, sb, task, limit)
		}
	})
	f.reset(false)
	f.step("eval", `{}`)
	for range 20 {
		if s := f.step("listener", `{}`).State; s.EvalPassed == nil || s.TestsPassed == nil {
			t.Fatalf("%+v", s)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs of the tests for one evaluation", runs)
	}

	// Later steps do not copy the tests' output either, however long it is.
	const size = 16 << 20
	f = open(t, func(c *env.Config) {
		c.Evaluate = func(context.Context, env.Sandbox, schemas.Task, time.Duration) (env.EvalReport, error) {
			text := strings.Repeat("test_calc.py::test_double FAILED\n", size/33)
			return env.EvalReport{Tests: map[string]string{"test_calc.py::test_double": "failed"}, Output: text}, nil
		}
	})
	f.reset(false)
	f.step("eval", `{}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		f.step("listener", `{}`)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 20; n > size/20 {
		t.Errorf("a step after an evaluation of %d bytes allocates %d", size, n)
	}
}

// The agent can read neither the fix nor the names of hidden tests anywhere in the sandbox. The
// test searches all files except those in /usr, which is the host's and read-only. It also searches
// the objects in .git and the environments and arguments of processes.
func TestSandboxContainsNoFixAndNoHiddenTests(t *testing.T) {
	marker := "M4RK" + strings.Repeat("Zq7", 5)
	f := open(t, func(c *env.Config) {
		c.Task.GoldPatch = "--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n def double(x):\n-    y = x + 1\n+    y = x * 2  # " + marker + "\n     return y\n"
		c.Task.Tests.FailToPass = append(slices.Clone(c.Task.Tests.FailToPass), "tests/test_"+marker+".py::test_hidden")
	})
	f.reset(false)
	f.step("eval", `{}`)
	f.step("pdb", `{"command":"n"}`)
	search := func(what string) string {
		// The command assembles the text from two halves, so that the search does not find itself.
		half := len(what) / 2
		return f.step("bash", fmt.Sprintf(`{"command":"m='%s'; m=$m'%s'; `+
			`grep -rlaF --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -f <(printf %%s \"$m\") / 2>/dev/null; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -caF -f <(printf %%s \"$m\"); `+
			`git cat-file --batch-all-objects --batch 2>/dev/null | grep -caF -f <(printf %%s \"$m\")","timeout":120}`, what[:half], what[half:])).Observation.Text
	}
	if got := search(marker); got != "0\n0\n[exit code 1]\n" {
		t.Errorf("found: %s", got)
	}
	// Check that the search does find text that is there.
	if got := search("def double"[4:] + "(x):"); !strings.Contains(got, "/testbed/calc.py\n") || !strings.HasSuffix(got, "\n1\n") {
		t.Errorf("the search misses text that exists: %s", got)
	}
	if got := f.step("bash", `{"command":"git rev-list --all --reflog | wc -l; git fsck --unreachable --no-progress; git stash list; git remote; ls .git/logs 2>&1 | head -3"}`).Observation.Text; !strings.HasPrefix(got, "1\n") || strings.Contains(got, "unreachable") {
		t.Errorf("history: %s", got)
	}
}
