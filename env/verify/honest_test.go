package verify

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tracesmith/tracesmith/schemas"
)

// The guard must not reject honest programs, fixes and tests. The archive has the files of the patch
// and the tests of the base tree.
func TestHonestPatchesAreResolved(t *testing.T) {
	a, err := txtar.ParseFile("testdata/honest.txtar")
	if err != nil {
		t.Fatal(err)
	}
	base, fixed := fixture(t), honest(t)
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "tests/") {
			base = base.edited(f.Name, string(f.Data))
		}
		fixed = fixed.edited(f.Name, string(f.Data))
	}
	for entry, want := range map[string]int{pytestEntry: 20, unittestEntry: 5} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			v := verifier(t)
			k := task(base, entry, schemas.TestSpec{Files: []string{"tests/**"}})
			// Baseline finds the tests with the fix as the gold patch.
			patch, sha := patchTo(t, v, base, fixed)
			k.GoldPatch = string(patch)
			spec, err := v.Baseline(t.Context(), k, base)
			if err != nil {
				t.Fatal(err)
			}
			if len(spec.FailToPass) != want {
				t.Errorf("%d tests pass only with the patch, want %d: %s", len(spec.FailToPass), want, strings.Join(spec.FailToPass, " "))
			}
			k.Tests, k.GoldPatch = spec, ""
			got, err := v.Verify(t.Context(), k, base, patch, sha)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != schemas.VerifiedPass {
				t.Errorf("%s: %s\n%s", got.Status, got.Reason, got.Log)
			}
		})
	}
}
