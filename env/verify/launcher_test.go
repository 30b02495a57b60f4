package verify

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// An entrypoint that is a Python program starts the tests in its own interpreter, or
// no result counts and the verdict says what to write instead.
func TestALauncherThatStartsATestProcessIsNamed(t *testing.T) {
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
