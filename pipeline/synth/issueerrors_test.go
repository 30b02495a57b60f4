package synth

import (
	"strings"
	"testing"
)

// A note about a test says which exception the test expects, and a user's text shows no private names.
func TestNotesNameTheExpectedException(t *testing.T) {
	f := Failure{Test: "t.py::test_a", Type: "TypeError", Message: "bad", Text: "TypeError: bad", Statement: "f(1)", Lines: []TestLine{{"test_a", "f(1)"}}, Scene: &Scene{Relation: relationRaises, Raises: "ValueError"}}
	i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}}
	if got := i.note(); firstLine(got) != "`test_a`: TypeError: bad; expected ValueError" {
		t.Error(got)
	}
	for call, public := range map[string]bool{"_f(1)": false, "set(_f(1))": false, "m._f(1)": false, "f('_x')": true, "f(__name__)": true} {
		if got := (failureSummary{call: call}).isPublic(); got != public {
			t.Errorf("%s is public: %v", call, got)
		}
	}
}

// A report begins with the test whose error says most, and shows a statement instead of a bare AssertionError.
func TestReportsBeginWithTheBestError(t *testing.T) {
	bare := Failure{Test: "t.py::test_a", Type: "AssertionError", Text: "AssertionError", Statement: "assert form.is_valid() is False", Lines: []TestLine{{"test_a", "assert form.is_valid() is False"}}}
	value := Failure{Test: "t.py::test_b", Type: "KeyError", Message: "'x'", Text: "KeyError: 'x'"}
	i := issue{Command: "pytest", Failures: []Failure{bare, value}, Failing: []string{bare.Test, value.Test}}
	if got := i.testRun(); !strings.Contains(got, "`test_b` and one other test fail") || !strings.Contains(got, "- `t.py::test_b`: `KeyError: 'x'`\n- `t.py::test_a`: `assert form.is_valid() is False`") {
		t.Error(got)
	}
	i.Failures, i.Failing = i.Failures[:1], i.Failing[:1]
	for range 2 {
		if got := i.testRun(); strings.Count(got, "assert form.is_valid() is False") != 1 {
			t.Errorf("the failing statement occurs more than once, or not at all: %s", got)
		}
		i.Failures[0].Values = []string{"data = ' '"}
	}
}

// Values that look equal because their texts are cut, or because they have such a text, are not shown.
func TestEqualSidesAreNotShown(t *testing.T) {
	for name, f := range map[string]Failure{
		"cut":  {Message: "assert [datetime.dat... 7, 45)] == [datetime.dat... 7, 45)]", Left: "[" + strings.Repeat("1", 300) + "]", Right: "[" + strings.Repeat("1", 300) + "2]"},
		"same": {Message: "Row(k1) != Row(k1)", Left: "Row(k1)", Right: "Row(k1)"},
	} {
		f.Test, f.Type, f.Text, f.Statement = "t.py::test_a", "AssertionError", "AssertionError: "+f.Message, "assert f(rows) == row"
		f.Lines, f.Scene = []TestLine{{"test_a", f.Statement}}, &Scene{Relation: relationEqual, Call: "f(rows)"}
		i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}}
		for _, text := range []string{i.note(), i.testRun(), i.question(false)} {
			if strings.Contains(text, "k1") || strings.Contains(text, "7, 45") || strings.Contains(text, "111") {
				t.Errorf("%s: %s", name, text)
			}
		}
		if got := firstLine(i.note()); got != "`test_a` fails at `assert f(rows) == row`" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A test's name ends before its parameters, which may contain anything.
func TestShortName(t *testing.T) {
	for id, want := range map[string]string{
		"tests/test_a.py::T::test_x": "test_x", "tests/test_a.py::test_x[[::1%25]-[::1%2525]]": "test_x", "tests.test_a.T.test_x": "test_x", "test_a.py::test_x[a.b]": "test_x", "docs/first.rst::first.rst": "first.rst", "shop/cart.py::shop.cart.total": "total",
	} {
		if got := shortName(id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}
