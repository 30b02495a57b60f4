package policies

import "testing"

func TestTheFailingTestAlone(t *testing.T) {
	const id = "tests/test_a.py::test_x"
	for _, c := range []struct{ command, id, want string }{
		{"python3 -m pytest -q", id, "python3 -m pytest -q " + id},
		{"python3 -m pytest -q tests/test_a.py tests/test_b.py", id, "python3 -m pytest -q " + id},
		{"pytest tests -k 'a or b' -x", id, "pytest -k 'a or b' -x " + id},
		{"python -m pytest --tb=short -p no:cacheprovider tests/test_b.py::test_y", id, "python -m pytest --tb=short -p no:cacheprovider " + id},
		{"cd src && PYTHONPATH=. /usr/bin/pytest -q tests", id, "cd src && PYTHONPATH=. /usr/bin/pytest -q " + id},
		{"python -m pytest -rA tests/", id + "[1-a b]", "python -m pytest -rA '" + id + "[1-a b]'"},
		{"python -m pytest --mystery tests", id, ""},
		{"python -m pytest tests; echo done", id, ""},
		{"python -m pytest tests", "test_a (tests.A)", ""},
		{"make test", id, ""},
		{"python3 -m unittest -v tests.test_a tests.test_b", "tests.test_a.A.test_x", "python3 -m unittest -v tests.test_a.A.test_x"},
		{"python3 -m unittest discover -s tests", "test_a.A.test_x", ""},
		{"python3 -m unittest discover", "tests.test_a.A.test_x", "python3 -m unittest tests.test_a.A.test_x"},
	} {
		if got := alone(c.command, c.id); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.command, c.id, got, c.want)
		}
	}
}
