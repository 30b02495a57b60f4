package oracle

import "testing"

func TestFollowed(t *testing.T) {
	for _, c := range []struct {
		entrypoint string
		failing    []string
		want       string
	}{
		{"python3 -m pytest -q", []string{"tests/test_a.py::test_x[a\nb]", "tests/test_a.py::test_y[1]"}, "tests/test_a.py::test_y[1]"},
		{"python3 -m unittest discover", []string{"pointer.set_pointer", "tests.SetTests.test_set"}, "tests.SetTests.test_set"},
		{"python3 -m unittest discover", []string{"pointer.set_pointer"}, "pointer.set_pointer"},
		{"./check.sh", []string{"tests/test_a.py::test_x", "tests/test_a.py::test_y"}, "tests/test_a.py::test_x"},
	} {
		if got := followed(c.entrypoint, c.failing); got != c.want {
			t.Errorf("%s, %q: %q", c.entrypoint, c.failing, got)
		}
	}
}
