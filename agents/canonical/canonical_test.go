package canonical_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/canonical"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func value(t testing.TB, text string, rules ...canonical.Rule) any {
	t.Helper()
	v, err := envtest.Canonical([]byte(text), rules...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A rule makes the two values of its example equal, and the other rules together do not. So no
// rule is redundant.
func TestEachRuleIsNeeded(t *testing.T) {
	if len(canonical.Rules) > 10 {
		t.Errorf("%d rules, want at most ten", len(canonical.Rules))
	}
	page, err := os.ReadFile("../../docs/internals/canonical.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range canonical.Rules {
		a, b := r.Example[0], r.Example[1]
		if d := cmp.Diff(value(t, a), value(t, b)); d != "" {
			t.Errorf("%s: its example differs: %s", r.Name, d)
		}
		if d := cmp.Diff(value(t, a, r), value(t, b, r)); d != "" {
			t.Errorf("%s alone is not enough for its example: %s", r.Name, d)
		}
		others := slices.Delete(slices.Clone(canonical.Rules), i, i+1)
		if cmp.Equal(value(t, a, others...), value(t, b, others...)) {
			t.Errorf("%s is not needed for its example", r.Name)
		}
		if !strings.Contains(string(page), "| "+r.Name+" |") || !strings.Contains(string(page), r.Why) {
			t.Errorf("docs/internals/canonical.md does not list %q with its reason", r.Name)
		}
	}
}

func TestRulesLeaveOtherTextAlone(t *testing.T) {
	for in, want := range map[string]string{
		"1 failed, 4 passed in 0.08s":                       "1 failed, 4 passed",
		"===== 2 passed, 1 warning in 61.02s (0:01:01) ===": "=== 2 passed, 1 warning ===",
		"8 tests collected in 0.03s":                        "8 tests collected",
		"= 1/8 tests collected (7 deselected) in 0.02s =":   "=== 1/8 tests collected (7 deselected) ===",
		"= no tests ran in 0.01s =":                         "=== no tests ran ===",
		"Ran 2 tests in 0.004s\n\nOK":                       "Ran 2 tests\n\nOK",
		"\nreal\t0m1.002s\nuser\t0m0.001s\n":                "\nreal\t0m0.000s\nuser\t0m0.000s\n",
		"Fri Nov 21 06:37:01 UTC 2026":                      "(time)",
		"2026-11-21 06:37:12.123456789 +0000 x":             "(time) x",
		"2026-11-21T06:37:12Z":                              "(time)",
		"Current thread 0x00007f8e54c502c0 (most":           "Current thread 0x... (most",
		"<f at 0x7f2edce8b310>, 0xdeadbeef":                 "<f at 0x...>, 0xdeadbeef",
		"/tmp/tmpabcd_123/x /tmp/tmp.AbCdEfGh12 /tmp/out":   "/tmp/tmp.../x /tmp/tmp... /tmp/out",
		"slept for 3 passed in 0.1s of time":                "slept for 3 passed in 0.1s of time",
		"version 2026-11-21 at 0x10":                        "version 2026-11-21 at 0x10",
		"========== FAILURES ==========\nMay be 06:37":      "========== FAILURES ==========\nMay be 06:37",
	} {
		if got := canonical.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if got := canonical.Text(want); got != want {
			t.Errorf("%q is changed again: %q", want, got)
		}
	}
	got := value(t, `{"duration_ms":3,"a":[{"log_sha256":"x","n":1.5},"at 0x7f2edce8b310"],"b":null}`)
	if d := cmp.Diff(map[string]any{"a": []any{map[string]any{"n": 1.5}, "at 0x..."}, "b": nil}, got); d != "" {
		t.Error(d)
	}
	if _, err := envtest.Canonical([]byte(`{`)); err == nil {
		t.Error("Canonical accepted an incomplete value")
	}
}

// Applying the rules to their own result changes nothing.
func FuzzText(f *testing.F) {
	for _, r := range canonical.Rules {
		f.Add(r.Example[0])
	}
	f.Add("=== 1 passed in 0.1s ===\nFri Nov 21 06:37:01 UTC 2026")
	f.Fuzz(func(t *testing.T, text string) {
		once := canonical.Text(text)
		if again := canonical.Text(once); again != once {
			t.Errorf("%q, then %q", once, again)
		}
	})
}
