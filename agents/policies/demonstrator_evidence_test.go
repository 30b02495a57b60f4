package policies

import "testing"

// callees leaves out super().__init__() and the methods that a test defines, although the program has methods of that name.
func TestCalleesOfSpecialMethods(t *testing.T) {
	e := evidence{
		defs:  []definition{{name: "__init__", path: "cache.py", line: 3}, {name: "total", path: "cache.py", line: 9}},
		lines: map[string]map[int]string{"cache.py": {3: "    def __init__(self, size):", 9: "def total(x):"}},
	}
	for source, want := range map[string]string{
		"class Mine(Base):\n    def __init__(self):\n        super().__init__(total(3))\n": "total",
		"class Cache:\n    def __init__(self, size):\n        super().__init__()\n":        "__init__",
	} {
		if got := e.callees(source); len(got) != 1 || got[0].name != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// Tests that the task does not require may still fail when the required ones pass.
func TestDone(t *testing.T) {
	f := failure{id: "test_a.py::test_sum"}
	for all, want := range map[bool]string{true: "All tests pass now. I submit the fix.", false: "`test_a.py::test_sum` passes now. I submit the fix."} {
		if got := sayDone(f, all); got.text != want || len(got.claims) != 1 {
			t.Errorf("%+v", got)
		}
	}
}
