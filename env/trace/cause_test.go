package trace

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

var causeCases = map[string]struct {
	source, test, from, to string
	want                   schemas.TraceCause
}{
	"returned expression": {`def area(a, b):
    return a + b


def price(a, b):
    return 2 * area(a, b)
`, "self.assertEqual(p.price(3, 4), 24)", "a + b", "a * b", schemas.TraceCause{Function: "area", Line: 2, Vars: []string{"<return>"}, Hits: 1}},
	"each iteration": {`def total(prices):
    out = 0
    for price in prices:
        tax = price // 10
        out += price + tax
    return str(out)
`, `self.assertEqual(p.total([10, 20, 30]), "72")`, "price // 10", "price // 5", schemas.TraceCause{Function: "total", Line: 5, Vars: []string{"tax"}, Hits: 3}},
	"each call": {`def tax(price):
    return price // 10


def total(prices):
    return sum(price + tax(price) for price in prices)
`, "self.assertEqual(p.total([10, 20, 30]), 72)", "price // 10", "price // 5", schemas.TraceCause{Function: "tax", Line: 2, Vars: []string{"<return>"}, Hits: 3}},
	"exception in place of a return": {`def check(n):
    return n


class Form:
    def accepts(self, n):
        try:
            check(n)
        except ValueError:
            return False
        return True
`, "self.assertFalse(p.Form().accepts(-1))", "    return n\n", "    if n < 0:\n        raise ValueError(n)\n    return n\n",
		schemas.TraceCause{Function: "check", Line: 2, Vars: []string{"<exit>"}, Hits: 1}},
	"return in place of an exception": {`def check(n):
    if n <= 0:
        raise ValueError(n)
    return n


def half(n):
    return check(n) / 2
`, "self.assertEqual(p.half(0), 0)", "n <= 0", "n < 0", schemas.TraceCause{Function: "check", Line: 3, Vars: []string{"<return>"}, Hits: 1}},
	"nested function": {`def maker(n):
    def add(x):
        return x - n
    return add


def run():
    return [maker(1)(5)]
`, "self.assertEqual(p.run(), [6])", "x - n", "x + n", schemas.TraceCause{Function: "maker.<locals>.add", Line: 3, Vars: []string{"<return>"}, Hits: 1}},
	"lambda": {`key = lambda x: x
def run(items):
    return sorted(items, key=key)
`, "self.assertEqual(p.run([1, 2]), [2, 1])", "lambda x: x", "lambda x: -x", schemas.TraceCause{Function: "<lambda>", Line: 1, Vars: []string{"<return>"}, Hits: 2}},
	"global": {`LIMIT = 3


def small(n):
    return n < LIMIT
`, "self.assertTrue(p.small(3))", "LIMIT = 3", "LIMIT = 4", schemas.TraceCause{Function: "small", Line: 4, Vars: []string{"LIMIT"}, Hits: 1}},
}

// Experiments also change how functions end, and set a value at each execution of a line.
func TestEachPythonTestsCauses(t *testing.T) {
	for name, c := range causeCases {
		t.Run(name, func(t *testing.T) {
			every(t, func(t *testing.T, python string) {
				got := program(c.source, c.test).trace(t, python, "test", c.from, c.to)
				if len(got.Causes) == 0 {
					t.Fatal("no causes")
				}
				x, want := got.Causes[0], c.want
				if x.Function != want.Function || x.Line != want.Line || x.Hits != want.Hits || x.Vars[0] != want.Vars[0] || x.Verdict != schemas.CauseSufficient {
					t.Errorf("causes %+v\nd0 %+v", got.Causes, got.D0)
				}
			})
		})
	}
}
