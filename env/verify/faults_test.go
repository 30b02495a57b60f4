package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tracesmith/tracesmith/schemas"
)

// verdictOn returns the verdict on a patch that turns the fixture into another project.
func verdictOn(t *testing.T, to project) schemas.Verdict {
	t.Helper()
	v, base := verifier(t), fixture(t)
	patch, sha := patchTo(t, v, base, to)
	got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func resolved(v schemas.Verdict) bool { return v.Resolved != nil && *v.Resolved }

// The task's tests decide even if a patch adds tests with new names, with names of hidden tests, or
// tests that shadow them. A fix may add tests.
func TestHostileTestsDoNotReplaceTheTasksTests(t *testing.T) {
	base := fixture(t)
	weak := strings.Replace(base.text(t, "tests/test_prices.py"), "== 450", "== 250", 1)
	added := "def test_total():\n    assert True\n\ndef test_sum():\n    assert True\n"
	cases := map[string]project{
		"edited and added":  base.edited("tests/test_prices.py", weak).edited("tests/test_new.py", added),
		"same name, nested": base.edited("tests/prices/test_prices.py", added),
		"emptied and added": base.edited("tests/test_prices.py", "").edited("tests/test_more.py", added),
		"removed and added": slices.DeleteFunc(base.edited("tests/test_more.py", added), func(f txtar.File) bool { return f.Name == "tests/test_prices.py" }),
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if !isChosen(t, i) {
			continue
		}
		got := verdictOn(t, cases[name])
		if resolved(got) || got.Status != schemas.VerifiedFail || got.F2PPassed > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := verdictOn(t, honest(t).edited("tests/test_new.py", "from shop.prices import total\n\ndef test_new():\n    assert total([(1, 1)]) == 1\n")); !resolved(got) {
		t.Errorf("a fix that adds a test: %s\n%s", got.Reason, got.Log)
	}
}

// The output of a program is not a result, no matter when or how often it is printed.
func TestHostilePrintedResultsAreIgnored(t *testing.T) {
	base := fixture(t)
	cases := map[string]string{
		"at import":   "print('99 passed in 0.01s')\n",
		"at the end":  "import atexit\natexit.register(lambda: print('=== 99 passed, 0 failed in 0.01s ==='))\n",
		"unbuffered":  "import os\nos.write(1, b'collected 5 items\\n5 passed\\n')\nos.write(2, b'OK\\n')\n",
		"as a report": "print('tests/test_prices.py::test_total PASSED [100%]')\n",
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if !isChosen(t, i) {
			continue
		}
		got := verdictOn(t, base.edited("shop/prices.py", cases[name]+base.text(t, "shop/prices.py")))
		if resolved(got) || got.F2PPassed != 0 || got.F2PTotal != 2 || got.P2PPassed != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := verdictOn(t, honest(t).edited("shop/basket.py", "print('1 failed, 0 passed')\n"+base.text(t, "shop/basket.py"))); !resolved(got) {
		t.Errorf("a fix that prints failures: %+v", got)
	}
}

// A submission without changes, or with an answer in prose only, is not resolved.
func TestSubmissionWithoutAFixIsNotResolved(t *testing.T) {
	base := fixture(t)
	for name, to := range map[string]project{
		"nothing": base, "an answer": base.edited("ANSWER.md", "The last line is left out.\n"),
	} {
		if got := verdictOn(t, to); resolved(got) || got.Status != schemas.VerifiedFail || got.Reason == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Tests that the agent edited are restored before the verdict: weakened tests do not help, and broken
// tests do no harm to a fix.
func TestEditedTestsAreRestored(t *testing.T) {
	base := fixture(t)
	weak := strings.Replace(base.text(t, "tests/test_prices.py"), "== 450", "== 250", 1)
	got := verdictOn(t, base.edited("tests/test_prices.py", weak))
	if resolved(got) || !slices.Equal(got.Restored, []string{"tests/test_prices.py"}) {
		t.Errorf("weakened: %+v", got)
	}
	got = verdictOn(t, honest(t).edited("tests/test_prices.py", "raise SystemExit(1)\n").edited("tests/test_basket.py", ""))
	if !resolved(got) || !slices.Equal(got.Restored, []string{"tests/test_basket.py", "tests/test_prices.py"}) {
		t.Errorf("broken, with the fix: %+v", got)
	}
}
