package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// recorded returns the lines that the hooks in an interpreter write for some records. process is the number of the
// interpreter.
func recorded(c channel, process int, bodies ...string) string {
	var out strings.Builder
	mac := ""
	for i, b := range bodies {
		body := fmt.Sprintf("%d %d %s", process, i, b)
		mac = c.sign(process, mac+" "+body)
		fmt.Fprintf(&out, "%s %s\n", mac, body)
	}
	return out.String()
}

var (
	begin  = `{"k":"begin"}`
	passed = `{"k":"test","id":"a::b","s":"passed"}`
	end    = `{"k":"end","active":true,"status":0}`
)

func testChannel() channel {
	return channel{dir: "x", keys: env.Keys{Name: "x", Secret: []byte(strings.Repeat("k", 32))}}
}

// four is env.Result.Keys of a run with four interpreters, each of which started after the previous one had ended.
var four = make([]bool, 4)

func TestReadAcceptsWholeRecords(t *testing.T) {
	c := testChannel()
	other := `{"k":"test","id":"c::d","s":"failed"}`
	one, two := recorded(c, 0, begin, passed, end), recorded(c, 1, begin, other, `{"k":"end","active":true,"status":1}`)
	got := c.read([]byte(one+two), four)
	if len(got.tampered) > 0 || got.runners != 2 || got.exit != 1 {
		t.Errorf("read = %+v", got)
	}
	if diff := cmp.Diff(map[string]string{"a::b": "passed", "c::d": "failed"}, got.tests); diff != "" {
		t.Error(diff)
	}
	if got := c.read([]byte(one+recorded(c, 1, begin, passed, end)), four); !slices.Equal(got.duplicates, []string{"a::b"}) {
		t.Errorf("an id reported by two interpreters: %+v", got)
	}
	background := []bool{true, false}
	if got := c.read([]byte(recorded(c, 1, begin, passed, end)), background); len(got.tampered) > 0 {
		t.Errorf("an interpreter in the background that reports nothing: %+v", got)
	}
}

func TestReadDetectsTampering(t *testing.T) {
	c := testChannel()
	whole := recorded(c, 0, begin, passed, end)
	lines := strings.SplitAfter(whole, "\n")
	stranger := channel{keys: env.Keys{Secret: []byte("another key")}}
	for name, raw := range map[string]string{
		"edited":         strings.Replace(whole, "passed", "failed", 1),
		"line missing":   lines[0] + lines[2],
		"first missing":  lines[1] + lines[2],
		"end missing":    lines[0] + lines[1],
		"truncated":      whole[:len(whole)-9],
		"swapped":        lines[1] + lines[0] + lines[2],
		"twice":          whole + whole,
		"old line again": whole + lines[2],
		"after end":      recorded(c, 0, begin, end, passed, end),
		"forged":         whole + recorded(stranger, 1, begin, passed, end),
		"no such key":    whole + recorded(c, len(four), begin, end),
		"silent":         whole + recorded(c, 2, begin, `{"k":"test","id":"c::d","s":"passed"}`, end),
		"noise":          "hello\n" + whole,
		"empty line":     whole + "\n",
		"finding":        recorded(c, 0, begin, `{"k":"found","what":"x"}`, end),
	} {
		if got := c.read([]byte(raw), four); len(got.tampered) == 0 {
			t.Errorf("%s: not detected: %+v", name, got)
		}
	}
	if got := c.read([]byte(recorded(c, 0, begin, `{"k":"end","active":true,"status":null}`)), four); !got.unfinished || len(got.tampered) > 0 {
		t.Errorf("a runner without an exit status: %+v", got)
	}
}

func FuzzRead(f *testing.F) {
	c := testChannel()
	f.Add(recorded(c, 0, begin, passed, end))
	f.Add(recorded(c, 1, begin, `{"k":"plan","hooks":["a"]}`, `{"k":"seen","what":["a","b"]}`, end))
	f.Fuzz(func(t *testing.T, raw string) {
		got := c.read([]byte(raw), four)
		if len(got.tampered) == 0 && raw != "" && got.runners == 0 && len(got.tests) > 0 && !strings.Contains(raw, "end") {
			t.Errorf("results without an end: %+v", got)
		}
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"conftest.py", "conftest.py", true}, {"conftest.py", "a/b/conftest.py", true}, {"conftest.py", "a/xconftest.py", false},
		{"test_*.py", "a/test_b.py", true}, {"test_*.py", "test_dir/x.py", false},
		{"tests/**", "tests/a.py", true}, {"tests/**", "tests/a/b.py", true}, {"tests/**", "tests", true}, {"tests/**", "a/tests/b.py", false},
		{"tests/", "tests/a.py", true}, {"**/tests/**", "a/b/tests/c.py", true}, {"**/tests/**", "tests/c.py", true},
		{"tests/*.py", "tests/a.py", true}, {"tests/*.py", "tests/a/b.py", false}, {"./tests/**", "tests/a", true},
		{"a/**/b.py", "a/b.py", true}, {"a/**/b.py", "a/x/y/b.py", true}, {"a/**/b.py", "a/x/y/c.py", false}, {"[", "[", false},
	} {
		if got := matches(c.pattern, c.file); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.file, got)
		}
	}
}

func TestAssess(t *testing.T) {
	spec := schemas.TestSpec{Method: schemas.VerifyPytest, FailToPass: []string{"f"}, PassToPass: []string{"p"}}
	run := func(exit, code int, tests map[string]string) testRun {
		return testRun{Result: env.Result{ExitCode: code}, results: results{tests: tests, runners: 1, exit: exit}}
	}
	good := map[string]string{"f": "passed", "p": "passed"}
	with := func(status string) map[string]string {
		return map[string]string{"f": "passed", "p": "passed", "o": status}
	}
	late := run(0, 0, good)
	late.TimedOut = true
	limited := run(0, 0, good)
	limited.Limit = "memory"
	none := run(0, 0, good)
	none.runners = 0
	twice := run(0, 0, good)
	twice.duplicates = []string{"f"}
	for name, c := range map[string]struct {
		run  testRun
		pass bool
	}{
		"all pass":               {run(0, 0, good), true},
		"a test reported twice":  {twice, false},
		"another skipped":        {run(0, 0, with("skipped")), true},
		"another fails":          {run(1, 1, with("failed")), true},
		"another fails, || true": {run(1, 0, with("failed")), true},
		"1 without a failure":    {run(0, 1, good), false},
		"runner 1 without":       {run(1, 0, good), false},
		"exit 2":                 {run(0, 2, with("failed")), false},
		"interrupted":            {run(2, 0, with("failed")), false},
		"killed":                 {run(0, 137, good), false},
		"missing":                {run(0, 0, map[string]string{"p": "passed"}), false},
		"skipped":                {run(0, 0, map[string]string{"f": "skipped", "p": "passed"}), false},
		"xpassed":                {run(0, 0, map[string]string{"f": "xpassed", "p": "passed"}), false},
		"regression":             {run(1, 1, map[string]string{"f": "passed", "p": "failed"}), false},
		"timeout":                {late, false},
		"memory":                 {limited, false},
		"no runner":              {none, false},
	} {
		if got := assess(spec, c.run); (got.reason == "") != c.pass {
			t.Errorf("%s: reason %q", name, got.reason)
		}
	}
	if got := assess(schemas.TestSpec{Method: schemas.VerifyPytest}, run(0, 0, nil)); got.reason == "" {
		t.Error("a task that expects no test to pass was resolved")
	}
}

func TestProtector(t *testing.T) {
	v, base := verifier(t), fixture(t).edited("run_all.py", "").edited("Makefile", "")
	tree, err := v.cfg.Store.Base(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	files, err := v.cfg.Store.Files(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	unit := schemas.TestSpec{Method: schemas.VerifyUnittest, FailToPass: []string{"tests.test_basket.BasketTest.test_sum"}}
	for _, c := range []struct {
		entry, file string
		spec        schemas.TestSpec
		want        bool
	}{
		{"pytest", "tests/test_prices.py", schemas.TestSpec{FailToPass: []string{"tests/test_prices.py::test_total"}}, true},
		{"pytest", "shop/prices.py", schemas.TestSpec{FailToPass: []string{"tests/test_prices.py::test_total"}}, false},
		{"pytest --doctest-modules", "shop/prices.py", schemas.TestSpec{FailToPass: []string{"shop/prices.py::shop.prices.total"}}, false},
		{"python3 -m unittest", "tests/test_basket.py", unit, true},
		{"python3 -m unittest", "shop/prices.py", schemas.TestSpec{Method: schemas.VerifyUnittest, FailToPass: []string{"shop.prices.total"}}, false}, // a doctest
		{"python3 -m unittest", "shop/tests.py", schemas.TestSpec{Method: schemas.VerifyUnittest, FailToPass: []string{"shop.tests.Cases.check_sum"}}, true},
		{"A=1 ./check.sh", "check.sh", unit, true}, {"sh /testbed/check.sh -x", "check.sh", unit, true}, {"pytest", "check.sh", unit, false},
		{"python3 run_all.py", "run_all.py", unit, true},
		{"python3 run_all.py", "run_all.py", schemas.TestSpec{Method: schemas.VerifyExitCode}, false},
		{"make test", "Makefile", unit, true}, {"pytest", "Makefile", unit, false},
	} {
		got := newProtector(task(base, c.entry, c.spec), c.spec, files)(c.file)
		if got != c.want {
			t.Errorf("%q protects %s: %v", c.entry, c.file, got)
		}
	}
}
