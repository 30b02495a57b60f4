package pdb

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// eachPytest runs f once per interpreter that has pytest, either installed or in the folder to which
// scripts/pythons.sh downloads it. run is the command line that starts pytest with the n-th
// interpreter.
func eachPytest(t *testing.T, f func(t *testing.T, n int, run string)) {
	extra, err := filepath.Abs("../../out/pythons/pytest")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, py := range pythons(t) {
		version, err := exec.Command(py, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
		if err != nil {
			t.Fatalf("running %s: %v", py, err)
		}
		path := "PYTHONPATH=" + filepath.Join(extra, strings.TrimSpace(string(version)))
		for _, run := range []string{py, path + " " + py} {
			if exec.Command("sh", "-c", run+" -c 'import pytest'").Run() != nil {
				continue
			}
			n := tried
			tried++
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(py)))+"/"+filepath.Base(py), func(t *testing.T) {
				t.Parallel()
				f(t, n, run+" -m pytest -q -p no:cacheprovider")
			})
			break
		}
	}
	if tried == 0 {
		t.Fatal("no interpreter has pytest (install python3-pytest)")
	}
}

func TestEachPythonPytest(t *testing.T) {
	modes := []string{"-s", "--capture=sys", "--capture=tee-sys"}
	eachPytest(t, func(t *testing.T, n int, run string) {
		for _, mode := range []string{"", modes[n%len(modes)]} { // only two modes per interpreter, because starting the program is slow
			b := open(t, run+" "+mode+" test_total.py")
			b.write("test_total.py", totals)
			b.at(b.do("b pkg/prices.py:19, len(prices) == 3 ;; c"), "pkg/prices.py", 19)
			b.has(b.do("n ;; p result ;; up ;; p n"), "1\n", "> test_total.py(11)test_param()\n", "1\n")
			b.has(b.do("cl ;; n"), "\n-> assert (got")
			r := b.do("c")
			b.has(r, "captured words", "assert 3 == 4", "1 failed, 4 passed", "exit code 1")
		}

		b := open(t, run+" --pdb test_total.py")
		b.write("test_total.py", totals)
		r := b.do("c")
		b.at(r, "test_total.py", 15)
		b.has(r, "assert 3 == 4", "(post-mortem: this exception was caught; p, w, up and down work here, everything else continues the program)")
		b.has(b.do("p prices"), "[Price(a), Price(b)]")
		b.has(b.do("n"), "1 failed, 4 passed", "exit code 1")

		b = open(t, run+" --trace test_total.py")
		b.write("test_total.py", totals)
		b.has(b.do("c"), "--Call--", "test_param")
		b.has(b.do("n ;; p n ;; up"), "1\n", "_pdb.runcall(")
		b.hasNot(b.do("w"), "pdb shim")
	})
}

const totals = `import pytest
from unittest import TestCase
from pkg.prices import Price, total
@pytest.fixture
def prices():
    yield [Price("a", 1), Price("b", 2)]
    print("put away")
@pytest.mark.parametrize("n", [1, 2])
def test_param(n, prices, capsys):
    print("out", n)
    got = total(prices + [Price("c", 3)])
    assert (got, "out %d\n" % n) == (6, capsys.readouterr().out)
def test_fails(prices):
    print("captured words")
    assert total(prices) == 4
class Cases(TestCase):
    def test_raises(self):
        self.assertRaises(AttributeError, total, ["a"])
def test_input():
    with pytest.raises((OSError, EOFError)):
        input("? ")
`
