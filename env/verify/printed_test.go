package verify

import (
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// The score comes from records. A printed summary in the format of the runner does not change it.
func TestPrintedSummariesAreNotTheScore(t *testing.T) {
	v := verifier(t)
	p := fixture(t).edited("tests/test_prices.py", "print('collected 50 items')\nprint('==== 99 passed in 0.01s ====')\n"+
		"def test_one():\n    print('98 passed')\n    assert False\n\ndef test_two():\n    pass\n")
	withSandbox(t, v, p, func(sb env.Sandbox) {
		report, err := Eval(t.Context(), sb, task(p, "python3 -m pytest -s tests/test_prices.py", schemas.TestSpec{Method: schemas.VerifyPytest}), 0)
		if err != nil || report.Max != 2 || report.Score != 1 || report.Passed {
			t.Errorf("%v of %v, %v", report.Score, report.Max, err)
		}
		// Without a test runner, the maximum is 1.
		report, err = Eval(t.Context(), sb, task(p, "echo '7 passed'; exit 5", schemas.TestSpec{}), 0)
		if err != nil || report.Max != 1 || report.Score != 0 || report.Passed {
			t.Errorf("%v of %v, %v", report.Score, report.Max, err)
		}
	})
}
