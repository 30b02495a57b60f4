package verify

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// While a library is imported, it may do things that would be tampering in the program, and the verdict
// does not blame the program that imports it. For example, pandas sets __code__.
func TestLibraryImportsAreNotTampering(t *testing.T) {
	v, base := verifier(t), fixture(t)
	lib := t.TempDir()
	for _, dir := range []string{filepath.Dir(lib), lib} { // the sandbox user reads it
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := "import gc\n\ndef a():\n    return 1\n\ndef b():\n    return 2\n\na.__code__ = b.__code__\ngc.get_objects()\n"
	if err := os.WriteFile(filepath.Join(lib, "biglib.py"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	v.cfg.Spec.Mounts = []env.Mount{{Host: lib, Path: "/opt/lib"}}
	v.cfg.Spec.Env = []string{"PYTHONPATH=/opt/lib"}
	fixed := honest(t)
	fixed = fixed.edited("shop/prices.py", "import biglib\n\n"+fixed.text(t, "shop/prices.py"))
	patch, sha := patchTo(t, v, base, fixed)
	got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
	if err != nil {
		t.Fatal(err)
	}
	if got.Resolved == nil || !*got.Resolved {
		t.Errorf("verdict %s: %s", got.Status, got.Reason)
	}
}

// Old versions of pytest write "()" for the instance of a class in ids, but not in their output.
func TestIDsOfOldPytest(t *testing.T) {
	ids := []string{"tests/test_a.py::TestA::()::test_b[x::()]", "tests/test_a.py::TestA::TestIn::test_b", "tests/test_a.py::test_b", "tests/test_a.py"}
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", `import sys
sys.path.insert(0, "python")
from tracesmith_pytest import node_id
class config: rootpath = "/w"
class guard: relative = staticmethod(lambda path: path[3:])
for one in sys.argv[1:]:
    print(node_id(one, config, guard))`}, ids...)...).CombinedOutput()
	ids[0] = "tests/test_a.py::TestA::test_b[x::()]"
	if got := strings.TrimSpace(string(out)); err != nil || got != strings.Join(ids, "\n") {
		t.Errorf("%v: %s", err, got)
	}
}
