package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// printOrder is the beginning of a test file whose tests append their names to ran. At exit, it
// prints the order and the hash seed.
const printOrder = `import atexit, os, unittest
ran = []
atexit.register(lambda: print("ORDER=" + ",".join(ran) + " SEED=" + os.environ.get("PYTHONHASHSEED", "")))
`

// orderProjects returns projects whose tests report the order in which they run.
func orderProjects() (pytest, unit project) {
	var plain, classes strings.Builder
	plain.WriteString(printOrder)
	classes.WriteString(printOrder)
	for _, n := range "abcdefgh" {
		plain.WriteString("def test_" + string(n) + "(): ran.append('" + string(n) + "')\n")
	}
	for _, class := range []string{"A", "B", "C"} {
		classes.WriteString("class " + class + "(unittest.TestCase):\n")
		for _, n := range "1234" {
			classes.WriteString("  def test_" + string(n) + "(self): ran.append('" + class + string(n) + "')\n")
		}
	}
	return project{{Name: "test_order.py", Data: []byte(plain.String())}}, project{{Name: "test_order.py", Data: []byte(classes.String())}}
}

func observe(t *testing.T, v *Verifier, p project, entry string, variant Variant) (run Run, order, seed string) {
	t.Helper()
	run, err := v.Observe(t.Context(), task(p, entry, schemas.TestSpec{}), p, nil, variant)
	if err != nil {
		t.Fatal(err)
	}
	if run.Finding != "" {
		t.Errorf("the results are not trusted: %s", run.Finding)
	}
	_, rest, found := strings.Cut(string(run.Output), "ORDER=")
	order, rest, _ = strings.Cut(rest, " SEED=")
	seed, _, _ = strings.Cut(rest, "\n")
	if !found {
		t.Fatalf("the output has no order:\n%s", run.Output)
	}
	return run, order, seed
}

func TestVariantsChangeOrderHashSeedAndChoice(t *testing.T) {
	v := verifier(t)
	byPytest, byUnittest := orderProjects()
	cases := map[string]struct {
		tree  project
		entry string
		own   string
		only  []string
	}{
		"pytest":              {byPytest, "python3 -m pytest -q -s", "a,b,c,d,e,f,g,h", []string{"test_order.py::test_b", "test_order.py::test_g"}},
		"unittest":            {byUnittest, "python3 -m unittest", "A1,A2,A3,A4,B1,B2,B3,B4,C1,C2,C3,C4", []string{"test_order.A.test_2", "test_order.C.test_3"}},
		"TestCases of pytest": {byUnittest, "python3 -m pytest -q -s", "A1,A2,A3,A4,B1,B2,B3,B4,C1,C2,C3,C4", []string{"test_order.py::A::test_2", "test_order.py::C::test_3"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, order, seed := observe(t, v, c.tree, c.entry, Variant{})
			if order != c.own || seed != "0" {
				t.Errorf("without a variant: order %s, hash seed %s", order, seed)
			}
			for id := range run.Tests {
				if _, known := run.Seconds[id]; !known {
					t.Errorf("no duration of %s", id)
				}
			}
			_, first, seed := observe(t, v, c.tree, c.entry, Variant{Shuffle: 7, HashSeed: "11"})
			_, again, _ := observe(t, v, c.tree, c.entry, Variant{Shuffle: 7})
			_, other, _ := observe(t, v, c.tree, c.entry, Variant{Shuffle: 8})
			if first != again || first == c.own || first == other || seed != "11" {
				t.Errorf("orders %s and %s with one seed, %s with another, hash seed %s", first, again, other, seed)
			}
			parts := strings.Split(first, ",")
			classes := slices.Compact(func() (out []string) {
				for _, p := range parts {
					out = append(out, strings.TrimRight(p, "1234"))
				}
				return out
			}())
			if len(parts) != len(strings.Split(c.own, ",")) || strings.Contains(c.own, "A1") && len(classes) != 3 {
				t.Errorf("order %s loses tests or mixes classes", first)
			}
			chosen, _, _ := observe(t, v, c.tree, c.entry, Variant{Only: c.only, Shuffle: 3})
			if diff := cmp.Diff(c.only, slices.Sorted(maps.Keys(chosen.Tests))); diff != "" {
				t.Errorf("chosen tests (-want +got):\n%s", diff)
			}
		})
	}
}

// A probe gets the id of each test, and the run returns its output.
func TestProbeObservesEachTest(t *testing.T) {
	v := verifier(t)
	byPytest, byUnittest := orderProjects()
	probe := &Probe{Limit: 1 << 16, Config: map[string]any{"word": "seen"}, Source: `
class Watch(object):
    def __init__(self, config, path):
        self.word, self.path = config["word"], path
    def begin(self, name):
        with open(self.path, "a") as f:
            f.write(self.word + " " + name + "\n")
    def end(self, name, status):
        self.begin("/" + name + " " + status)
def start(config, path, relative):
    return Watch(config, path)
`}
	for entry, want := range map[string]struct {
		tree project
		id   string
	}{
		"python3 -m pytest -q -s": {byPytest, "test_order.py::test_c"},
		"python3 -m unittest":     {byUnittest, "test_order.B.test_1"},
	} {
		run, _, _ := observe(t, v, want.tree, entry, Variant{Probe: probe, Only: []string{want.id}})
		if got := string(run.Probe); got != "seen "+want.id+"\nseen /"+want.id+" passed\n" {
			t.Errorf("%s: the probe wrote %q", entry, got)
		}
	}
}

func TestObserveOfAPatchThatDoesNotApply(t *testing.T) {
	v, base := verifier(t), fixture(t)
	_, err := v.Observe(t.Context(), task(base, pytestEntry, schemas.TestSpec{}), base,
		[]byte("--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n"), Variant{})
	if _, ok := err.(*workspace.ApplyError); !ok {
		t.Errorf("Observe = %v", err)
	}
}

// A runner that is ended early does not report its end. Its tests still tell which runner it was.
func TestMethodOfARunThatIsEndedEarly(t *testing.T) {
	r := testRun{Result: env.Result{TimedOut: true}, results: results{tests: map[string]string{"test_a.py::test_a": "passed"}}}
	if got := r.public(); got.Method != schemas.VerifyPytest || got.Finding != "the tests ran out of time" {
		t.Errorf("%+v", got)
	}
}

// pytest calls the attribute obj of a test function, but an item of a plugin may run something else. Its results
// count.
func TestItemsOfOtherKindsNeedNoFunction(t *testing.T) {
	p := project{{Name: "conftest.py", Data: []byte(`import pytest


class Case(pytest.Item):
    obj = staticmethod(lambda: None)

    def runtest(self):
        pass


class Cases(pytest.File):
    def collect(self):
        yield Case.from_parent(self, name="one")


def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".case":
        return Cases.from_parent(parent, path=file_path)
`)}, {Name: "a.case"}}
	v := verifier(t)
	run, err := v.Observe(t.Context(), task(p, pytestEntry, schemas.TestSpec{}), p, nil, Variant{})
	if err != nil || run.Finding != "" || run.Tests["a.case::one"] != "passed" {
		t.Errorf("%q, %v, %v\n%s", run.Finding, run.Tests, err, run.Output)
	}
}
