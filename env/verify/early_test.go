package verify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// earlyTests has three tests. DOES stands for the body of the second one.
const earlyTests = `
import ctypes, os, signal, time, unittest


class EarlyTest(unittest.TestCase):
    def test_a(self):
        pass

    def test_b(self):
        DOES

    def test_c(self):
        pass
`

// If a run ends early, the evaluation names the running test and the tests that had not started.
func TestEvalNamesTheTestThatEndedTheRun(t *testing.T) {
	v := verifier(t)
	entries := map[string]struct{ entry, prefix string }{
		"pytest":   {"python3 -m pytest -q tests/test_early.py", "tests/test_early.py::EarlyTest::"},
		"unittest": {"python3 -m unittest tests.test_early", "tests.test_early.EarlyTest."},
	}
	for name, c := range map[string]struct {
		does     string
		timedOut bool
		code     int
	}{
		"exits":           {"os._exit(0)", false, 0},
		"exits with code": {"os._exit(3)", false, 3},
		"killed":          {"os.kill(os.getpid(), signal.SIGKILL)", false, 137},
		"segfault":        {"ctypes.string_at(0)", false, 139},
		"hangs":           {"time.sleep(600)", true, 0},
	} {
		for runner, r := range entries {
			t.Run(runner+" "+name, func(t *testing.T) {
				t.Parallel()
				p := fixture(t).edited("tests/__init__.py", "").edited("tests/test_early.py", strings.ReplaceAll(earlyTests, "DOES", c.does))
				limit := time.Duration(0)
				if c.timedOut {
					limit = 20 * time.Second
				}
				got, err := Eval(t.Context(), startSandbox(t, v, p), task(p, r.entry, schemas.TestSpec{}), limit)
				if err != nil {
					t.Fatal(err)
				}
				if got.Passed || got.TimedOut != c.timedOut || got.Died == c.timedOut || !c.timedOut && got.ExitCode != c.code {
					t.Errorf("passed: %v, timed out: %v, died: %v, exit code %d", got.Passed, got.TimedOut, got.Died, got.ExitCode)
				}
				if got.Running != r.prefix+"test_b" || !slices.Equal(got.NotRun, []string{r.prefix + "test_c"}) || len(got.Tests) != 1 {
					t.Errorf("running: %q, not run: %q, results: %v", got.Running, got.NotRun, got.Tests)
				}
			})
		}
	}
}

// For a complete run, the evaluation reports no early end, even if tests failed.
func TestEvalOfACompleteRunReportsNoEarlyEnd(t *testing.T) {
	v := verifier(t)
	for name, does := range map[string]string{
		"fails": "self.fail()", "raises": "raise SystemExit(0)", "skips": "self.skipTest('no')",
		"a child dies": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import os; os._exit(9)'])",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fixture(t).edited("tests/test_early.py", strings.ReplaceAll(earlyTests, "DOES", does))
			got, err := Eval(t.Context(), startSandbox(t, v, p), task(p, "python3 -m pytest -q tests/test_early.py", schemas.TestSpec{}), 0)
			if err != nil || got.Died || got.Running != "" || len(got.NotRun) > 0 || len(got.Tests) != 3 {
				t.Errorf("report %+v, %v", got, err)
			}
		})
	}
}

// If a run dies before its first test, the evaluation names no test.
func TestEvalOfARunThatDiesWhileCollecting(t *testing.T) {
	p := fixture(t).edited("tests/conftest.py", "import os\nos._exit(0)\n")
	got, err := Eval(t.Context(), startSandbox(t, verifier(t), p), task(p, pytestEntry, schemas.TestSpec{}), 0)
	if err != nil || !got.Died || got.Running != "" || len(got.NotRun) > 0 || len(got.Tests) > 0 || got.Passed {
		t.Errorf("report %+v, %v", got, err)
	}
}
