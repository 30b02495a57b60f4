package verify

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// An entrypoint that is a Python program must run the tests in the same interpreter. Otherwise no
// result counts, and the verdict asks for the test command itself as the entrypoint. It does not ask
// if no Python program ran at all.
func TestLaunchersOfTestProcessesAreReported(t *testing.T) {
	v, base := verifier(t), fixture(t)
	base = base.edited("child.py", "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-m', 'pytest', '-q']))\n").
		edited("replaced.py", "import os, sys\nos.execv(sys.executable, [sys.executable, '-m', 'pytest', '-q'])\n").
		edited("within.py", "import sys, pytest\nsys.exit(pytest.main(['-q']))\n")
	patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", honest(t).text(t, "shop/prices.py")))
	for entry, c := range map[string]struct {
		want  string
		named bool
	}{
		"python3 child.py": {schemas.VerifiedFail, true}, "python3 replaced.py": {schemas.VerifiedFail, true},
		"python3 within.py": {schemas.VerifiedPass, false}, "true": {schemas.VerifiedFail, false},
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			got, err := v.Verify(t.Context(), task(base, entry, pytestSpec), base, patch, sha)
			if err != nil || got.Status != c.want {
				t.Fatalf("%s (%s), %v\n%s", got.Status, got.Reason, err, got.Log)
			}
			if named := strings.Contains(got.Reason, "name the test command itself"); named != c.named {
				t.Errorf("reason %q", got.Reason)
			}
		})
	}
}

// Tools that read the source of all executed code do not see the functions that the verifier adds to the
// test runner to record results.
func TestHooksAreInvisibleToCoverageTools(t *testing.T) {
	v, base := verifier(t), fixture(t)
	patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", honest(t).text(t, "shop/prices.py")))
	for _, entry := range []string{
		"python3 -m trace --count -C /tmp/counts --module pytest -q",
		strings.Replace(unittestEntry, "-m unittest", "-m trace --count -C /tmp/counts --module unittest", 1),
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			spec := pytestSpec
			if strings.Contains(entry, "unittest") {
				spec = unittestSpec
			}
			got, err := v.Verify(t.Context(), task(base, entry, spec), base, patch, sha)
			if err != nil || got.Status != schemas.VerifiedPass {
				t.Errorf("%s (%s), %v\n%s", got.Status, got.Reason, err, got.Log)
			}
		})
	}
}

// Frames of frozen code count as library code, so a patch must not give its code such a file name.
func TestCodeWithAFrozenFileNameIsAFinding(t *testing.T) {
	v, base := verifier(t), fixture(t)
	fixed := honest(t).text(t, "shop/prices.py") + "\nexec(compile('def helper(): return 1', '<frozen helper>', 'exec'))\n"
	patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", fixed))
	for entry, spec := range map[string]schemas.TestSpec{pytestEntry: pytestSpec, unittestEntry: unittestSpec} {
		got, err := v.Verify(t.Context(), task(base, entry, spec), base, patch, sha)
		if err != nil || got.Status != schemas.VerifiedFail || !strings.Contains(got.Reason, "compile was used by shop/prices.py") {
			t.Errorf("%s: %s (%s), %v", entry, got.Status, got.Reason, err)
		}
	}
}
