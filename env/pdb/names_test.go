package pdb

import "testing"

// Nested scopes in commands and conditions see the local names, which they would not see with plain eval.
// A breakpoint at a function is at the first line that has code.
func TestEachPythonNestedScopesSeeLocals(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" odd.py hides_names")
		b.has(b.do("b inner, all(k == 1 and n for _ in range(1))"), "set at "+b.line("odd.py", "n += k")+", if all(")
		b.hasNot(b.do("c"), "raised")
		b.has(b.do("p [k * v for v in range(3)], (lambda: n)(), sum(k for _ in 'ab')"), "([0, 1, 2], 4, 2)\n")
		b.has(b.do("pp {k: v for v in 'ab'}"), "{1: 'b'}\n")
		b.has(b.do("whatis [k for v in 'ab']"), "<class 'list'>")
		b.has(b.do("display [k + i for i in range(2)]"), "[1, 2]")
		b.has(b.do("!doubles = [k * i for i in range(3)] ;; p doubles"), "[0, 1, 2]\n")
		b.has(b.do("[k for i in range(2)]"), "[1, 1]\n")
		b.has(b.do("for i in range(2):\n    print([k + i for _ in 'a'], sum(k for _ in range(i)), end=' ')"), "[1] 0 [2] 1 ")
		b.has(b.do("!global above; above = 5 ;; p above, k"), "(5, 1)\n")
		b.has(b.do("!import math ;; p [math.floor(k) for _ in 'ab']"), "[1, 1]\n")
		b.has(b.do("p 'doubles' in globals(), 'above' in globals()"), "True)\n")
		b.has(b.do("!k = 7 ;; p [k for _ in 'ab']"), "[7, 7]\n")
		b.has(b.do("undisplay ;; cl ;; "+"b "+b.line("odd.py", "print(above, values)")+" ;; c"), "Breakpoint 2 hit.")
		b.has(b.do("p [local for _ in values]"), "[2, 2, 2]\n")
		b.has(b.do("!local = 9 ;; n ;; n"), "5 [4, 11, 13]\n", "->9\n")
		b.has(b.try("p [nothing for _ in 'ab']"), "*** NameError: name 'nothing' is not defined")
	})
}
