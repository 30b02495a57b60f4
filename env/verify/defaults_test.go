package verify

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// A patch that repairs the bug but also replaces a part of a function of the runner is not resolved.
func TestReplacedPartsOfTheRunner(t *testing.T) {
	v, base := verifier(t), fixture(t)
	for part, value := range map[string]string{"__defaults__": "(None,) * 5", "__kwdefaults__": "{'when': 'call'}", "__code__": "TestReport.__init__.__code__.replace()"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			code := "\n\nfrom _pytest.reports import TestReport\nTestReport.__init__." + part + " = " + value + "\n"
			p := honest(t)
			patch, sha := patchTo(t, v, base, p.edited("shop/prices.py", p.text(t, "shop/prices.py")+code))
			got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
			if err != nil {
				t.Fatal(err)
			}
			if got.Resolved == nil || *got.Resolved || got.Status != schemas.VerifiedFail || !strings.Contains(got.Reason, "TestReport.__init__ was replaced") {
				t.Errorf("verdict %+v", got)
			}
		})
	}
}

// Modules of unittest that a program loads late do not hide what it has replaced before.
func TestReplacedPartsAndALateModule(t *testing.T) {
	v, base := verifier(t), fixture(t)
	code := "\n\nimport unittest.util\nunittest.util.safe_repr.__defaults__ = (True,)\nimport unittest.mock\n"
	p := honest(t)
	patch, sha := patchTo(t, v, base, p.edited("shop/prices.py", p.text(t, "shop/prices.py")+code))
	got, err := v.Verify(t.Context(), task(base, unittestEntry, unittestSpec), base, patch, sha)
	if err != nil {
		t.Fatal(err)
	}
	if got.Resolved == nil || *got.Resolved || !strings.Contains(got.Reason, "safe_repr was replaced") {
		t.Errorf("verdict %+v", got)
	}
}
