package pdb

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// line returns FILE:LINE of the only line of a file that contains text.
func (b *testDebugger) line(file, text string) string {
	b.t.Helper()
	for i, line := range strings.Split(b.read(file), "\n") {
		if strings.TrimSpace(line) == text {
			return fmt.Sprintf("%s:%d", file, i+1)
		}
	}
	b.t.Fatalf("%s has no line %q", file, text)
	return ""
}

// The debugger can stop, step and continue each program of testdata/shop/odd.py, and still works for the
// next one.
func TestEachPythonOddPrograms(t *testing.T) {
	cases := map[string]struct {
		steps string
		want  []string
	}{
		"deletes_itself":    {"n ;; n ;; p x", []string{"1\n", "The program still runs the old version of odd.py"}},
		"loses_its_folder":  {"n ;; n ;; n ;; n ;; p x ;; b main.py:13", []string{"1\n", "set at main.py:13"}},
		"stops_tracing":     {"b seen_by_nobody ;; n ;; c", []string{"Breakpoint 2 hit."}},
		"traces_itself":     {"b seen_by_nobody ;; n ;; c", []string{"inside 5", "odd.py:27 called sys.settrace: the debugger could not trace the program from then on", "exit code 0"}},
		"without_streams":   {"c", []string{"Uncaught exception: ZeroDivisionError", "post-mortem"}},
		"replaces_builtins": {"n ;; n ;; n ;; p [x, 'y'] ;; w ;; ll ;; b main.py:13 ;; !z = 3 ;; p z", []string{"[1, 'y']\n", "set at main.py:13", "3\n"}},
		"replaces_more_builtins": {"unt 55 ;; p x ;; pp {'a': [x]} ;; whatis x ;; a ;; w ;; ll ;; l ;; b seen_by_nobody ;; b main.py:13, x == 2 ;; u ;; d ;; !z = 3 ;; p z ;; display z ;; n",
			[]string{"1\n", "{'a': [1]}", "set at main.py:13", "3\n", "--Return--"}},
		"closes_descriptors": {"n ;; n ;; p x", []string{"1\n"}},
		"runs_code":          {"c", []string{"KeyError: 1", "made/up.py:2 in <module> (post-mortem", "no source is available"}},
		"broken_hook":        {"c", []string{"SystemError: hook is broken", "Uncaught exception: KeyError: 'missing'", "post-mortem"}},
		"quiet_hook":         {"c", []string{"Uncaught exception: KeyError: 'missing'", "post-mortem"}},
		"unspeakable":        {"c", []string{"Unspeakable: <", "post-mortem"}},
		"bad_farewell":       {"c", []string{"ValueError: on leaving", "left", "exit code 0"}},
		"keeps_nothing":      {"b Counted.greet ;; c ;; p self.alive ;; c", []string{"Breakpoint 2 hit.", "1\n", "alive 0\n"}},
		"bad_exit_handler":   {"c", []string{"bye", "ZeroDivisionError", "exit code 0"}},
		"alarms":             {"c", []string{"alarms True", "exit code 0"}},
		"collects":           {"c", []string{"gc: collecting generation 2", "collected", "exit code 0"}},
		"thread_exits":       {"c", []string{"still here", "exit code 0"}},
		"base_exception":     {"cl ;; c", []string{"Base: base", "post-mortem"}},
		"reads":              {"c", []string{"['', '', [], b'']", "exit code 0"}},
		"asks":               {"c", []string{"True []\n", "console\n>>> \n", "help> \n", "(Cmd) end of commands", "no answer: EOFError", "no answer: OSError", "exit code 0"}},
		"very_deep":          {"c", []string{"bottom", "exit code 0"}},
		"coroutines":         {"b one ;; c ;; p n ;; cl ;; c", []string{"Breakpoint 2 hit.", "sum 5", "exit code 0"}},
		"generators":         {"b counts ;; c ;; n ;; p i ;; n ;; cl ;; c", []string{"0\n", "total 3", "exit code 0"}},
		"subprocesses":       {"c", []string{`b"''\n"`, "total 3", "exit code 0"}},
	}
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "python3 main.py")
		source := b.read("odd.py")
		for name, c := range cases {
			if err := b.Reset(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			b.write("odd.py", source) // one of them deletes it
			b.doUnder(py+" odd.py "+name, "b "+name)
			b.at(b.do("c"), "odd.py", b.Frame().Line)
			r := b.try(c.steps)
			b.has(r, c.want...)
			if strings.Contains(r.Text, `File "<pdb shim>"`) {
				t.Errorf("%s: the debugger shows itself:\n%s", name, r.Text)
			}
		}
		b.has(b.doUnder(py+" main.py", "n ;; p 6 * 7"), "42\n")
	})
}

func TestOddProgramsEndWithinTheLimit(t *testing.T) {
	b := open(t, "python3 odd.py hanging_exit_handler")
	b.do("n")
	r := b.doWithin("c", shortTimeout)
	b.has(r, "bye", "Threads or exit handlers of the program were still running after 2 s and were killed.", "exit code 0")
	// The debugger does not wait for a program that handles interrupts itself.
	b = open(t, "python3 odd.py own_interrupts")
	b.do("b " + b.line("odd.py", "while x:") + " ;; c")
	began := time.Now()
	r = b.doWithin("cl ;; b main.py:13 ;; c", shortTimeout)
	b.has(r, "could not be interrupted", "Breakpoints are kept (1).")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

func TestEachPythonChainedExceptions(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" odd.py chained")
		b.has(b.do("c"), "KeyError: 'key'", "RuntimeError: outer", "post-mortem")
		r := b.try("exceptions")
		if strings.Contains(r.Text, "needs Python 3.13") {
			return // up to 3.12
		}
		b.has(r, "0 KeyError('key')", "1 RuntimeError('outer')")
		b.has(b.do("exceptions 0"), `{}["key"]`)
		b.has(b.do("c"), "exit code 1")
	})
}

func TestEachPythonSteppingCommands(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		b.has(b.do("b 119 ;; c"), "Breakpoint 1 hit.\n> tricky.py(119)numbers()\n-> square = n * n\n")
		b.has(b.do("display n"), "display n: 0")
		b.has(b.do("c"), "display n: 1  [old: 0]")
		b.do("undisplay n")
		b.hasNot(b.do("c"), "display")
		b.do("alias double p %1 * 2 ;; p 'again'")
		b.has(b.do("double n"), "4\n'again'\n")
		b.do("unalias double ;; cl")
		b.at(b.do("unt 120"), "tricky.py", 120)
		b.at(b.do("jump 118"), "tricky.py", 118)
		b.at(b.do("unt 120"), "tricky.py", 120)
		b.at(b.do("up"), "tricky.py", 153)
		b.has(b.try("up 5"), "*** Oldest frame")
		b.at(b.do("down 1"), "tricky.py", 120)
		b.has(b.do("source numbers"), "square = n * n")
		b.has(b.do("h"), "Documented commands")
		b.at(b.do("s ;; s"), "tricky.py", 153)
		b.has(b.do("s ;; s"), "exit code 0")
	})
}
