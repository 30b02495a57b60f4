package synth

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doctestProgram runs the doctests of the module basket, with stock as a part of the project, and prints the
// description of each failure by the name of the test.
const doctestProgram = `
import doctest, json, sys
sys.path[:0] = sys.argv[1:3]
import tracesmith_failure
import basket
out = {}
for test in doctest.DocTestFinder().find(basket):
    try:
        doctest.DebugRunner(verbose=False).run(test)
    except (doctest.DocTestFailure, doctest.UnexpectedException):
        out[test.name.split(".")[-1]] = tracesmith_failure.describe(*sys.exc_info(), lambda file: "basket.py" if file.endswith("basket.py") else None)
print(json.dumps(out))
`

const basket = `
def total(items):
    """Adds prices.

    >>> items = [1, 2]
    >>> total(items)
    3
    >>> items.append(4)
    >>> total(items)
    8
    """
    return sum(items)


def first(items):
    """
    >>> import math
    >>> first([math.pi])  # doctest: +ELLIPSIS
    3.14...
    >>> first([])
    0
    """
    return items[0]


def show(items):
    """
    >>> for item in ["a", "b"]:
    ...     show(item)
    a
    c
    """
    print(items)


def check(items):
    """
    >>> check([])
    Traceback (most recent call last):
    ValueError: no items
    """


def convert(text):
    """
    >>> convert("x")
    Traceback (most recent call last):
    KeyError: 'x'
    """
    return int(text)
`

// A text about a doctest shows the example, and not the name and the line of the test.
func TestDescriptionsOfDoctests(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "basket.py"), []byte(basket), 0o644); err != nil {
		t.Fatal(err)
	}
	raw, err := exec.Command("python3", "-c", doctestProgram, "python", dir).Output()
	if err != nil {
		exit, _ := errors.AsType[*exec.ExitError](err)
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	var failures map[string]Failure
	if err := json.Unmarshal(raw, &failures); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	got := map[string][2]string{}
	for name, f := range failures {
		f.Test = "basket.py::basket." + name
		s := summarize(f)
		got[name] = [2]string{s.title(), s.code}
		if name == "show" {
			got[name] = [2]string{s.message, f.excerpt()}
		}
	}
	if diff := cmp.Diff(map[string][2]string{
		"total":   {"`total(...)` returns `7` instead of `8`", "from basket import total\n\nitems = [1, 2]\ntotal(items)\nitems.append(4)\ntotal(items)"},
		"first":   {"`first([])` fails with `IndexError: list index out of range`", "import math\nfrom basket import first\n\nfirst([math.pi])\nfirst([])"},
		"show":    {"expected 'c', got 'b'", "for item in [\"a\", \"b\"]: show(item)"},
		"check":   {"`check([])` does not raise `ValueError`", "from basket import check\n\ncheck([])"},
		"convert": {"`convert(\"x\")` raises `ValueError` instead of `KeyError`", "from basket import convert\n\nconvert(\"x\")"},
	}, got); diff != "" {
		t.Error(diff)
	}
	if frames := failures["first"].Frames; len(frames) != 1 || frames[0].Function != "first" {
		t.Errorf("frames of an exception in an example: %+v", frames)
	}
}
