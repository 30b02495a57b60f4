package verify

import (
	"errors"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tracesmith/tracesmith/schemas"
)

// docstringProject returns a project with body as the result of footer.
func docstringProject(body string) project {
	return project(txtar.Parse([]byte("-- page.py --\ndef footer():\n    return " + body + `
-- tests/test_page.py --
import unittest
from page import footer

class Page(unittest.TestCase):
    def test_one(self):
        """
        A page has a footer.

        More of it.
        """
        self.assertEqual(footer(), "foot")

    def test_two(self):
        """Nothing is wrong."""
`)).Files)
}

// Benchmarks name unittest tests as in the log of unittest, which prints docstrings instead of ids.
func TestTestsAreFoundByTheirDocstrings(t *testing.T) {
	v := verifier(t)
	base := docstringProject(`""`)
	spec := schemas.TestSpec{Method: schemas.VerifyUnittest, FailToPass: []string{"A page has a footer."}, PassToPass: []string{"Nothing is wrong."}}
	for body, want := range map[string]bool{`"foot"`: true, `"head"`: false} {
		patch, final := patchTo(t, v, base, docstringProject(body))
		got, err := v.Verify(t.Context(), task(base, "python3 -m unittest discover tests", spec), base, patch, final)
		if err != nil || resolved(got) != want || got.P2PPassed != 1 {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	spec.FailToPass = []string{"A page has no footer."}
	patch, final := patchTo(t, v, base, docstringProject(`"foot"`))
	got, err := v.Verify(t.Context(), task(base, "python3 -m unittest discover tests", spec), base, patch, final)
	if err != nil || resolved(got) || !strings.Contains(got.Reason, "A page has no footer. did not run") {
		t.Errorf("a docstring that no test has: %+v, %v", got, err)
	}
}

// A patch of the test runner's own repository could change its verdict.
func TestTestRunnersAreRefusedAsRepositories(t *testing.T) {
	v := verifier(t)
	base := project(txtar.Parse([]byte("-- src/_pytest/__init__.py --\n-- src/_pytest/skipping.py --\nx = 1\n-- test_x.py --\ndef test_x(): assert 0\n")).Files)
	lists := schemas.TestSpec{Method: schemas.VerifyPytest, FailToPass: []string{"test_x.py::test_x"}}
	for name, spec := range map[string]schemas.TestSpec{"lists": lists, "baseline": {Method: schemas.VerifyPytest}} {
		_, err := v.Spec(t.Context(), task(base, "python3 -m pytest -q", spec), base)
		if defect, ok := errors.AsType[*TaskError](err); !ok || !errors.Is(defect, ErrUntrusted) || !strings.Contains(defect.Detail, "its own test runner, in src/_pytest") {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := v.Verify(t.Context(), task(base, "python3 -m pytest -q", lists), base, nil, "")
	if err != nil || got.Status != schemas.VerifyError || !strings.Contains(got.Reason, "its own test runner") {
		t.Errorf("%+v, %v", got, err)
	}
}
