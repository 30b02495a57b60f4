package verify

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

func goldPatch(t *testing.T, v *Verifier) string {
	t.Helper()
	patch, _ := patchTo(t, v, fixture(t), honest(t))
	return string(patch)
}

func TestBaselineFindsTheLists(t *testing.T) {
	v, base := verifier(t), fixture(t)
	files := []string{"tests/**"}
	unimportable := base.edited("shop/basket.py", "raise ImportError('bug')\n")
	gold, _ := patchTo(t, v, unimportable, honest(t))
	exit := schemas.TestSpec{Method: schemas.VerifyExitCode, Files: files}
	withFiles := func(s schemas.TestSpec) schemas.TestSpec { s.Files = files; return s }
	cases := map[string]struct {
		tree  project
		entry string
		gold  string
		want  schemas.TestSpec
	}{
		"pytest":         {base, pytestEntry, "", withFiles(pytestSpec)},
		"pytest gold":    {base, "./check.sh", goldPatch(t, v), withFiles(pytestSpec)},
		"unittest":       {base, unittestEntry, "", withFiles(unittestSpec)},
		"script":         {base, "PYTHONPATH=. python3 tests/test_basket.py", "", withFiles(schemas.TestSpec{Method: schemas.VerifyUnittest, FailToPass: []string{"tests.test_basket.BasketTest.test_sum"}, PassToPass: []string{"tests.test_basket.BasketTest.test_rejects_nothing"}})},
		"exit code":      {base, `test "$(python3 -c 'from shop.prices import total; print(total([(1, 2)]))')" = 2`, "", exit},
		"exit code gold": {base, `test "$(python3 -c 'from shop.prices import total; print(total([(1, 2)]))')" = 2`, goldPatch(t, v), exit},
		// Without the fix, the test file cannot be imported, so all its tests fail.
		"import error gold": {unimportable, pytestEntry, string(gold), withFiles(schemas.TestSpec{
			Method: schemas.VerifyPytest,
			FailToPass: []string{
				"tests/test_basket.py::BasketTest::test_rejects_nothing", "tests/test_basket.py::BasketTest::test_sum",
				"tests/test_prices.py::test_discount", "tests/test_prices.py::test_empty", "tests/test_prices.py::test_total",
			},
		})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := task(c.tree, c.entry, schemas.TestSpec{Files: files})
			task.GoldPatch = c.gold
			got, err := v.Baseline(t.Context(), task, c.tree)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBaselineTaskErrors(t *testing.T) {
	v, base := verifier(t), fixture(t)
	cases := map[string]struct {
		tree   project
		entry  string
		method string
		gold   string
		want   error
	}{
		"no tests":                   {base, "python3 -m pytest shop", "", "", ErrNoTests},
		"no tests unittest":          {base, "python3 -m unittest discover shop", "", "", ErrNoTests},
		"healthy":                    {honest(t), pytestEntry, "", "", ErrNothingToFix},
		"healthy exit":               {base, "true", "", "", ErrNothingToFix},
		"broken suite":               {base.edited("tests/test_basket.py", "import nowhere\n"), pytestEntry, "", "", ErrNotCollected},
		"broken conftest":            {base.edited("conftest.py", "import nowhere\n"), pytestEntry, "", "", ErrNotCollected},
		"broken unittest":            {base.edited("tests/test_basket.py", "import nowhere\n"), unittestEntry, "", "", ErrNotCollected},
		"no such command":            {base, "pytset -q", "", "", ErrNotCollected},
		"no runner":                  {base, "python3 -m nosuchrunner", schemas.VerifyPytest, "", ErrNotCollected},
		"slow":                       {base, "sleep 100", "", "", ErrTooSlow},
		"useless gold":               {base, pytestEntry, "", "--- /dev/null\n+++ b/README\n@@ -0,0 +1 @@\n+x\n", ErrGoldFails},
		"gold of another repository": {base, pytestEntry, "", "--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n", ErrGoldFails},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := v
			if name == "slow" {
				v = New(Config{Driver: v.cfg.Driver, Store: v.cfg.Store, Timeout: 1e9})
			}
			task := task(c.tree, c.entry, schemas.TestSpec{Method: c.method})
			task.GoldPatch = c.gold
			spec, err := v.Baseline(t.Context(), task, c.tree)
			if !errors.Is(err, c.want) {
				t.Fatalf("Baseline = %+v, %v; want %v", spec, err, c.want)
			}
			if msg := err.Error(); !strings.HasPrefix(msg, "task shop: ") || strings.Contains(msg, "\n") {
				t.Errorf("message %q does not name the task in one line", msg)
			}
			got, err := v.Verify(t.Context(), task, c.tree, nil, "")
			if err != nil || got.Status != schemas.VerifyError || got.Reason == "" || got.Resolved != nil {
				t.Errorf("Verify = %+v, %v; want a verdict with status error and a reason", got, err)
			}
		})
	}
}

func TestVerifyWithoutLists(t *testing.T) {
	v, base := verifier(t), fixture(t)
	patch, sha := patchTo(t, v, base, honest(t))
	task := task(base, pytestEntry, schemas.TestSpec{Files: []string{"tests/**"}})
	for range 2 { // the second time from the cache
		got, err := v.Verify(t.Context(), task, base, patch, sha)
		if err != nil || got.Resolved == nil || !*got.Resolved || got.F2PTotal != 2 || got.P2PTotal != 3 {
			t.Errorf("Verify = %+v, %v", got, err)
		}
	}
	got, err := v.Verify(t.Context(), task, base, nil, "")
	if err != nil || got.Resolved == nil || *got.Resolved {
		t.Errorf("Verify of the empty patch = %+v, %v", got, err)
	}
}

func TestVerifyRefusesAnotherTree(t *testing.T) {
	v, base := verifier(t), fixture(t)
	patch, _ := patchTo(t, v, base, honest(t))
	_, other := patchTo(t, v, base, base.edited("x", "y"))
	for name, p := range map[string][]byte{"builds another tree": patch, "does not apply": []byte("--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n")} {
		got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, p, other)
		if err != nil || got.Status != schemas.VerifyError || got.Resolved != nil || got.Reason == "" || got.FinalSHA != other {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// startSandbox returns a new sandbox that contains a project.
func startSandbox(t *testing.T, v *Verifier, p project) env.Sandbox {
	t.Helper()
	sb, err := v.cfg.Driver.Start(t.Context(), env.SandboxSpec{Workdir: schemas.DefaultWorkdir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close(context.Background()) })
	var load bytes.Buffer
	if err := p.WriteTar(&load); err != nil {
		t.Fatal(err)
	}
	if err := sb.TarIn(t.Context(), schemas.DefaultWorkdir, &load); err != nil {
		t.Fatal(err)
	}
	return sb
}

func TestEval(t *testing.T) {
	v := verifier(t)
	none := schemas.TestSpec{}
	cases := map[string]struct {
		tree       project
		entry      string
		spec       schemas.TestSpec
		score, max float64
		passed     bool
		tests      int
	}{
		"base":            {fixture(t), pytestEntry, pytestSpec, 0, 2, false, 5},
		"fixed":           {honest(t), pytestEntry, pytestSpec, 2, 2, true, 5},
		"base no lists":   {fixture(t), pytestEntry, none, 3, 5, false, 5},
		"fixed no lists":  {honest(t), pytestEntry, none, 5, 5, true, 5},
		"unittest":        {honest(t), unittestEntry, unittestSpec, 1, 1, true, 2},
		"exit code":       {honest(t), "true", schemas.TestSpec{Method: schemas.VerifyExitCode}, 1, 1, true, 0},
		"exit code fails": {honest(t), "false", schemas.TestSpec{Method: schemas.VerifyExitCode}, 0, 1, false, 0},
		"nothing runs":    {honest(t), "true", pytestSpec, 0, 2, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sb := startSandbox(t, v, c.tree)
			got, err := Eval(t.Context(), sb, task(c.tree, c.entry, c.spec), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got.Score != c.score || got.Max != c.max || got.Passed != c.passed || len(got.Tests) != c.tests {
				t.Errorf("report: %+v", got)
			}
			left, err := sb.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "ls -d /tmp/.trace* 2>/dev/null; env | grep -i -e tracesmith_c -e pythonpath"}})
			if err != nil || len(left.Output) > 0 {
				t.Errorf("files of the verifier after the run: %q (error %v)", left.Output, err)
			}
		})
	}
}

// The traceback of a test does not show the hooks.
func TestTracebacksContainOnlyTheProject(t *testing.T) {
	p := fixture(t).edited("tests/test_basket.py", `
import unittest


class BasketTest(unittest.TestCase):
    def test_fails(self):
        self.assertEqual(1, 2)

    def test_raises(self):
        raise KeyError("here")
`)
	v := verifier(t)
	for _, entry := range []string{unittestEntry, pytestEntry} {
		got, err := Eval(t.Context(), startSandbox(t, v, p), task(p, entry, schemas.TestSpec{}), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"self.assertEqual(1, 2)", `raise KeyError("here")`} {
			if !strings.Contains(got.Output, want) {
				t.Errorf("%s: no %s in\n%s", entry, want, got.Output)
			}
		}
		if strings.Contains(got.Output, "tracesmith") || strings.Contains(got.Output, "unittest/case.py") {
			t.Errorf("%s: frames outside the project\n%s", entry, got.Output)
		}
	}
}

// The environment of the program and its children does not contain the channel.
func TestChannelIsInvisible(t *testing.T) {
	v := verifier(t)
	p := honest(t).edited("tests/test_env.py", `
import os, subprocess, sys


def test_env():
    words = " ".join(list(os.environ) + sys.path + list(sys.modules) + list(os.environ.values()))
    assert "tracesmith-" not in words and "tracesmith_" not in words and "TRACESMITH" not in words
    child = subprocess.run([sys.executable, "-c", "import os, sys; print(os.environ, sys.path, sys.modules)"], capture_output=True, text=True)
    assert child.returncode == 0
    assert "tracesmith-" not in child.stdout and "tracesmith_" not in child.stdout and "TRACESMITH" not in child.stdout
    assert os.environ.get("PYTHONPATH", "") == os.environ["EXPECTED_PATH"]
`)
	for name, entry := range map[string]string{
		"none":    "EXPECTED_PATH= " + pytestEntry,
		"own":     "EXPECTED_PATH=shop PYTHONPATH=shop " + pytestEntry,
		"quoted":  `EXPECTED_PATH=shop PYTHONPATH="shop" ` + pytestEntry,
		"earlier": `export EXPECTED_PATH=shop PYTHONPATH=shop; ` + pytestEntry,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Eval(t.Context(), startSandbox(t, v, p), task(p, entry, schemas.TestSpec{}), 0)
			if err != nil || !got.Passed || len(got.Tests) != 6 {
				t.Errorf("report %+v, %v", got, err)
			}
		})
	}
}
