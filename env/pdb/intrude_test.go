package pdb

import (
	"strings"
	"testing"
)

// If the program has modules with the same names as those that the debugger uses, the program imports
// its own modules and the debugger those of Python.
func TestEachPythonProgramMayShadowTheDebuggersModules(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		names := strings.Fields("ast bdb binascii cmd dis fcntl inspect json pdb pprint runpy select signal threading traceback types zipfile")
		b := open(t, py+" src/start.py")
		for _, folder := range []string{"", "src/"} {
			for _, name := range names {
				b.write(folder+name+".py", "mine = True\n")
			}
		}
		b.write("src/start.py", "import cmd, bdb, pdb, inspect, pprint\nfound = [cmd.mine, bdb.mine, pdb.mine, inspect.mine, pprint.mine]\nimport json.decoder\n")
		for _, entry := range []string{py + " src/start.py", "cd src && " + py + " -m start", "cd src && " + py + " -c '" + b.read("src/start.py") + "'"} {
			r := b.doUnder(entry, "n ;; n ;; p found ;; pp found ;; w ;; b total ;; cl ;; whatis found")
			b.has(r, "[True, True, True, True, True]\n", "set at pkg/prices.py:17", "<class 'list'>")
			b.has(b.do("c"), "ModuleNotFoundError", "'json' is not a package", "post-mortem")
		}
	})
}

// If the program replaces a builtin, the modules of the standard library see the replacement.
func TestEachPythonProgramMayReplaceInput(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" ask.py")
		b.write("ask.py", `import builtins, cmd
class Ask(cmd.Cmd):
    def do_go(self, arg):
        print("went", arg)
        return True
builtins.input = lambda prompt: "go home"
Ask().cmdloop()
`)
		b.has(b.do("b 4 ;; c"), "Breakpoint 1 hit.")
		b.has(b.do("c"), "went home", "exit code 0")
	})
}

// If the program calls pdb, it gets this debugger.
func TestEachPythonProgramsThatCallPdb(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" calls.py")
		b.write("calls.py", `import pdb, sys
def f(x):
    y = x + 1
    return y
print("got", pdb.runcall(f, 1))
pdb.run("z = f(2)")
print("z is", z)
print("got", pdb.runeval("f(a)", {"f": f, "a": 3}))
pdb.Pdb().set_trace()
old = sys.gettrace()
sys.settrace(None)
sys.settrace(old)
last = f(4)
`)
		r := b.do("c ;; p x")
		b.at(r, "calls.py", 2)
		b.has(r, "--Call--", "1\n")
		r = b.do("c")
		b.has(r, "got 2", "Current frame: <string>:1 in <module>", "no source is available")
		b.at(b.do("s ;; s ;; n"), "calls.py", 3)
		r = b.do("c")
		b.has(r, "z is 3", "Current frame: <string>:1 in <module>")
		b.at(b.do("s ;; s"), "calls.py", 2) // its globals have no __name__
		r = b.do("c")
		b.has(r, "got 4")
		b.at(r, "calls.py", 10)
		b.do("b f")
		r = b.do("c")
		b.at(r, "calls.py", 3)
		b.hasNot(b.do("c"), "was blind")
	})
}

func TestEachPythonBreakpointCallsCanBeSwitchedOff(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "PYTHONBREAKPOINT=0 "+py+" stops.py")
		b.write("stops.py", "try:\n    breakpoint()\nexcept NameError:  # 3.6\n    pass\nx = 1\nimport pdb; pdb.set_trace()\ny = 2\n")
		b.at(b.do("c"), "stops.py", 7)
		if !strings.Contains(py, "3.6") {
			b.at(b.doUnder("PYTHONBREAKPOINT= "+py+" stops.py", "c"), "stops.py", 5)
		}
	})
}

// The debugger's own compilation of the program shows no warnings a second time.
func TestEachPythonNoWarningsOfTheDebugger(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" -W always warns.py")
		b.write("warns.py", "def f():\n    return '\\d' is 0\nx = f()\n")
		b.do("n")
		b.hasNot(b.do("b f ;; b warns.py:2 ;; b warns.py:3 ;; n ;; source f"), "Warning:")
	})
}
