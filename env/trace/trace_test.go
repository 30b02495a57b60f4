package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

type project map[string]string

func (p project) tree(t testing.TB) env.Tree {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range p {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	tr, err := workspace.FromFS(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// pythons returns interpreters by version: those of TRACESMITH_TEST_PYTHONS (see scripts/pythons.sh), or else
// the system's, which is the only one that is known to have pytest.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	list := filepath.SplitList(suite.Pythons.Value(t))
	if len(list) == 0 {
		return map[string]string{"system": ""}
	}
	out := map[string]string{}
	for _, python := range list {
		version, err := exec.Command(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
		if err != nil {
			t.Fatalf("running %s: %v", python, err)
		}
		out[strings.TrimSpace(string(version))] = python
	}
	return out
}

func verifier(t testing.TB, python string) *verify.Verifier {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return verify.New(verify.Config{
		Driver: envtest.Driver(t, "bubblewrap"), Store: store, Timeout: 5 * time.Minute, Spec: env.SandboxSpec{Python: python},
	})
}

func task(entry string) schemas.Task {
	return schemas.Task{Source: "test", InstanceID: "till", Entrypoint: entry, Workdir: schemas.DefaultWorkdir}
}

var till = project{
	"till.py": `RATE = 2


def total(prices):
    amount = 0
    for price in prices[1:]:
        amount += price
    return amount


class Till:
    def __init__(self):
        self.prices = []

    def add(self, price):
        self.prices.append(price)

    def sum(self):
        result = total(self.prices)
        return result
`,
	"test_till.py": `import unittest

import till


class TillTest(unittest.TestCase):
    def setUp(self):
        self.till = till.Till()

    def test_empty(self):
        self.assertEqual(self.till.sum(), 0)

    def test_rate(self):
        self.assertEqual(till.RATE, 2)

    def test_sum(self):
        self.till.add(3)
        self.till.add(4)
        self.assertEqual(self.till.sum(), 7)
`,
}

func TestEachPythonCoverage(t *testing.T) {
	for version, python := range pythons(t) {
		for name, c := range map[string]struct{ entry, prefix string }{
			"unittest": {"python3 -m unittest", "test_till.TillTest."},
			"pytest":   {"python3 -m pytest -q", "test_till.py::TillTest::"},
		} {
			if name == "pytest" && version != "system" {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				got, run, err := Cover(t.Context(), verifier(t, python), task(c.entry), till.tree(t), nil, verify.Variant{})
				if err != nil {
					t.Fatalf("%v\n%s", err, run.Output)
				}
				if run.Tests[c.prefix+"test_sum"] != "failed" || run.Finding != "" || got.Cut {
					t.Errorf("tests %v, %s, cut %v", run.Tests, run.Finding, got.Cut)
				}
				want := map[string]Lines{
					c.prefix + "test_empty": {"till.py": {5, 6, 8, 13, 19, 20}, "test_till.py": {8, 11}},
					c.prefix + "test_rate":  {"till.py": {13}, "test_till.py": {8, 14}},
					c.prefix + "test_sum":   {"till.py": {5, 6, 7, 8, 13, 16, 19, 20}, "test_till.py": {8, 17, 18, 19}},
				}
				if diff := cmp.Diff(want, got.Tests); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
				if !slices.Contains(got.Outside["till.py"], 1) || slices.Contains(got.Outside["till.py"], 5) {
					t.Errorf("outside of tests: %v", got.Outside)
				}
				suspects := got.Ochiai(func(id string) bool { return run.Tests[id] != "passed" }, func(f string) bool { return f == "till.py" })
				if len(suspects) != 8 || suspects[0] != (Suspect{"till.py", 7, 1, 2}) || suspects[1].Line != 16 || suspects[7].Line != 13 || suspects[7].Rank != 8 {
					t.Errorf("suspects %+v", suspects)
				}
			})
		}
	}
}

// The program can write output in place of the probe. ReadCoverage accepts only valid records, within
// the limits.
func TestForgedCoverageIsBounded(t *testing.T) {
	c := readCoverage([]byte(`["test","a",[["f.py",[[1,3],[-5,2],[7,6],[1,999999999999]]],["g.py",7],5],false]
["test","b",[["f.py",[[1,3],[-5,2],[7,6],[1,99999999]]],["g.py",7]],false]
["test"]
[[]]
{"a":1}
["cut"]`))
	want := Coverage{Tests: map[string]Lines{"b": {"f.py": {1, 2, 3}}}, Outside: Lines{}, Cut: true}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzReadCoverage(f *testing.F) {
	f.Add([]byte(`["test","a",[["f.py",[[1,3]]]],false]`))
	f.Fuzz(func(t *testing.T, raw []byte) { readCoverage(raw) })
}
