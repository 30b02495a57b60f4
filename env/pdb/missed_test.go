package pdb

import "testing"

// When a program ends, the debugger lists the breakpoints at which it never stopped, and why.
func TestEachPythonMissedBreakpoints(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		b.do("b 120 ;; b 119, n > 99 ;; b tricky.py:9 ;; b 117 ;; ignore 4 5 ;; b main.py:13 ;; disable 5 ;; b 118")
		b.at(b.do("c"), "tricky.py", 118)
		b.do("cl 6")
		b.at(b.do("c"), "tricky.py", 120)
		r := b.do("c")
		b.has(r, "Breakpoint 2 did not stop the program at tricky.py:119, if n > 99: its line was reached (hits: 10), but the condition was not true.",
			"Breakpoint 3 did not stop the program at tricky.py:9: its line did not run, or only before the breakpoint was set.",
			"Breakpoint 4 did not stop the program at tricky.py:117: its line was reached (hits: 1), but these were ignored.")
		b.hasNot(r, "Breakpoint 1 did", "Breakpoint 5 did", "Breakpoint 6 did", "other processes")
		// Hits of an earlier run do not count, but a step to the line does.
		b.do("cl ;; b numbers ;; c ;; b 119 ;; b 120, n > 99")
		b.at(b.do("n"), "tricky.py", 119)
		b.at(b.do("restart ;; c ;; n ;; cl 7 ;; cl 8 ;; unt 120"), "tricky.py", 120)
		r = b.do("c")
		b.has(r, "exit code 0")
		b.hasNot(r, "did not stop")
	})
}

func TestManyMissedBreakpoints(t *testing.T) {
	b := open(t, "python3 main.py")
	b.do("b crash ;; b ask ;; b tricky.py:tty ;; b mimic ;; b loop ;; b hard_exit ;; b soft_exit")
	b.has(b.do("c"), "Breakpoint 5 did not stop the program at tricky.py:36: its line did not run, or only before the breakpoint was set.\nNor did 2 other breakpoints.\nThe program has ended")
}

func TestEachPythonBreakpointsMissedInAChildProcess(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "/usr/bin/python3 -c '' && "+py+" start.py") // the child of the shell is not the program's
		b.write("start.py", "import subprocess, sys\nif sys.argv[1:]:\n    subprocess.call([sys.executable, sys.argv[1]])\n")
		b.write("child.py", "x = 1\nprint('child runs')\n")
		b.do("b child.py:2")
		b.has(b.do("c"), "Breakpoint 1 did not stop the program at child.py:2: its line did not run, or only before")
		b.has(b.doUnder(py+" start.py child.py", "c"), "child runs\n", "child.py:2: its line did not run in this process.\nThe program started other processes",
			"pass its own command as the entrypoint.\n", "exit code 0. Breakpoints are kept (1).")
		b.at(b.doUnder(py+" child.py", "c"), "child.py", 2)
	})
}
