package testcmd

import "testing"

func TestOne(t *testing.T) {
	const id = "tests/test_a.py::test_x"
	for _, c := range []struct{ command, id, want string }{
		{"python3 -m pytest -q", id, "python3 -m pytest -q " + id},
		{"python3 -m pytest -q tests/test_a.py tests/test_b.py", id, "python3 -m pytest -q " + id},
		{"pytest tests -k 'a or b' -x", id, "pytest -k 'a or b' -x " + id},
		{"python -m pytest --tb=short -p no:cacheprovider tests/test_b.py::test_y", id, "python -m pytest --tb=short -p no:cacheprovider " + id},
		{"cd src && PYTHONPATH=. /usr/bin/pytest -q tests", id, "cd src && PYTHONPATH=. /usr/bin/pytest -q " + id},
		{"python -m pytest -q tests/test_*.py", id, "python -m pytest -q " + id},
		{"python -m pytest -rA tests/", id + "[1-a b]", "python -m pytest -rA '" + id + "[1-a b]'"},
		{"python -m pytest --mystery tests", id, ""},
		{"python -m pytest --failfast tests", id, ""}, // an option of unittest
		{"python -m pytest tests; echo done", id, ""},
		{"python -m pytest tests", "test_a (tests.A)", ""},
		{"make test", id, ""},
		{"python3 -m unittest", "tests.test_a.A.test_x", "python3 -m unittest tests.test_a.A.test_x"},
		{"python3 -m unittest -v tests.test_a tests.test_b", "tests.test_a.A.test_x", "python3 -m unittest -v tests.test_a.A.test_x"},
		{"python3 -m unittest -k test_y -kz -fb tests/test_b.py", "tests.test_a.A.test_x", "python3 -m unittest -fb tests.test_a.A.test_x"},
		{"python3 -m unittest discover", "tests.test_a.A.test_x", "python3 -m unittest tests.test_a.A.test_x"},
		{"python3 -m unittest discover -v -s ./", "tests.test_a.A.test_x", "python3 -m unittest -v tests.test_a.A.test_x"},
		{"python3 -m unittest discover -s tests -t .", "tests.test_a.A.test_x", "python3 -m unittest tests.test_a.A.test_x"},
		{"python3 -m unittest discover tests '*_a.py' .", "tests.test_a.A.test_x", "python3 -m unittest tests.test_a.A.test_x"},
		{"python3 -m unittest discover -s tests", "test_a.A.test_x", "python3 -m unittest discover -s tests -k '*test_a.A.test_x'"},
		{"python3 -m unittest discover tests -k y", "test_a.A.test_x", "python3 -m unittest discover tests -k '*test_a.A.test_x'"},
		{
			"cd a && python -m unittest discover -v --start-directory=src/tests -p 'test_*.py' -t src", "tests.test_a.A.test_x",
			"cd a && python -m unittest discover -v --start-directory=src/tests -p 'test_*.py' -t src -k '*tests.test_a.A.test_x'",
		},
		{"python3 -m unittest discover a b c d", "test_a.A.test_x", ""},
		{"python3 -m unittest discover -z tests", "test_a.A.test_x", ""},
		{"python3 -m unittest discover -s tests", "Adds up.", ""},
	} {
		if got := One(c.command, c.id, true); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.command, c.id, got, c.want)
		}
	}
}

func TestOneWithoutSelection(t *testing.T) {
	for command, want := range map[string]string{
		"python3 -m unittest discover -s tests":             "python3 -m unittest tests.test_a.A.test_x",
		"python3 -m unittest discover -b -s ./src/tests/":   "python3 -m unittest -b src.tests.test_a.A.test_x",
		"python3 -m unittest discover -s ../tests":          "",
		"python3 -m unittest discover -s /home/me/my/tests": "",
	} {
		if got := One(command, "test_a.A.test_x", false); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestDotted(t *testing.T) {
	for id, want := range map[string]string{
		"test_x (pkg.mod.A)":        "pkg.mod.A.test_x",
		"test_x (pkg.mod.A.test_x)": "pkg.mod.A.test_x",
		"pkg.mod.A.test_x":          "pkg.mod.A.test_x",
		"a.py::A::test_x[1 (b)]":    "a.py::A::test_x[1 (b)]",
	} {
		if got := Dotted(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
