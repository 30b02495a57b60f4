package pdb

import (
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

func TestEachPythonScriptStepByStep(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" main.py kiwi pear")
		r := b.do("b pkg/prices.py:19")
		b.has(r, "Breakpoint 1 set at pkg/prices.py:19", "The program is paused before its first line")
		b.at(r, "main.py", 1)
		r = b.do("c")
		b.at(r, "pkg/prices.py", 19)
		b.has(r, "Current frame: pkg/prices.py:19 in total", " 19 B->\t        result += price.amount", " 16    \tdef total(prices):")
		b.has(b.do("p prices"), "[Price(kiwi), Price(pear)]")
		b.has(b.try("p price.amount; 1"), "SyntaxError")
		r = b.do("up")
		b.at(r, "main.py", 13)
		b.has(r, " 13  ->\t")
		b.has(b.do("w"), "> main.py(13)run()")
		b.do("cl 1")
		b.at(b.do("n"), "main.py", 14)
	})
}

func TestEachPythonProgramEnds(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py soft_exit")
		r := b.do("c")
		b.has(r, "The program has ended with exit code 3.")
		if r.ExitCode == nil || *r.ExitCode != 3 || r.Frame == nil || r.Frame.Event != "finished" || b.Frame() != nil {
			t.Errorf("exit code %v, frame %v, kept %v", r.ExitCode, r.Frame, b.Frame())
		}
		r = b.do("p 1 + 1")
		b.has(r, "The program had ended, so it was started again.", "2")
		b.at(r, "tricky.py", 1)

		r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "c", Entrypoint: py + " tricky.py hard_exit", Timeout: longTimeout})
		if err != nil {
			t.Fatal(err)
		}
		b.has(r, "The entrypoint has changed", "last words", "exit code 7")
		r, err = b.Command(t.Context(), env.DebuggerCommand{Text: "c", Entrypoint: py + " main.py", Timeout: longTimeout})
		if err != nil {
			t.Fatal(err)
		}
		b.has(r, "total is 8", "exit code 0")
	})
}

func TestEachPythonModuleAndPackage(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" -m pkg")
		r := b.do("b total")
		b.has(r, "Breakpoint 1 set at pkg/prices.py:17")
		b.at(r, "pkg/__main__.py", 1)
		b.at(b.do("c"), "pkg/prices.py", 17)
		b.has(b.do("c"), "package total 3", "exit code 0")
	})
}

func TestCodeOnTheCommandLine(t *testing.T) {
	b := open(t, `python3 -c 'import sys; x = sys.argv[1:]
print(x)' "a  b" $((1+1))`)
	b.has(b.do("w"), "Current frame: <string>:1 in <module>", "import sys; x")
	b.has(b.do("c"), "['a  b', '2']", "exit code 0")
}

func TestPytestWithCapture(t *testing.T) {
	for _, entry := range []string{"python3 -m pytest -q tests", "/usr/bin/python3 -m pytest -q -p no:cacheprovider tests",
		"cd tests && FOO=1 python3 -m pytest -q test_prices.py", "pytest -q tests"} {
		t.Run(entry, func(t *testing.T) {
			b := open(t, entry)
			b.do("b tests/test_prices.py:9")
			b.do("b total, len(prices) == 1")
			r := b.do("c")
			b.at(r, "tests/test_prices.py", 9)
			b.has(r, "Breakpoint 1 hit.")
			b.has(b.do("p prices"), "[Price(a), Price(b)]")
			b.at(b.do("c"), "pkg/prices.py", 17) // of the unittest case
			b.has(b.do("!import os; print(os.environ.get('FOO', '-'), len(prices))"), " 1")
			r = b.do("c")
			b.has(r, "assert 3 == 4", "captured words", "1 failed, 1 passed", "exit code 1")
		})
	}
}

func TestEachPythonUnittest(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" -m unittest tests.test_prices")
		r := b.do("b TotalCase.test_total")
		b.has(r, "Breakpoint 1 set at tests/test_prices.py:14")
		b.at(b.do("c"), "tests/test_prices.py", 14)
		b.do("s")
		b.do("s")
		b.has(b.do("c"), "OK", "exit code 0")
	})
}

func TestEachPythonCrashIsPostMortem(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py crash")
		r := b.do("c")
		b.has(r, "Traceback (most recent call last)", "ZeroDivisionError", "post-mortem")
		b.at(r, "tricky.py", 9)
		b.has(b.do("p numbers"), "{'zero': 0}")
		b.at(b.do("up"), "tricky.py", 153)
		b.has(b.do("c"), "The program has ended with exit code 1.")
	})
}

func TestEachPythonBrokenProgram(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" broken.py")
		r := b.try("b 1")
		b.has(r, "could not start", "exit code 1", "IndentationError")
		if !r.IsError || r.Frame != nil {
			t.Errorf("got %+v", r)
		}
		r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "n", Entrypoint: py + " main.py", Timeout: longTimeout})
		if err != nil {
			t.Fatal(err)
		}
		b.at(r, "main.py", 2)
		r, err = b.Command(t.Context(), env.DebuggerCommand{Text: "n", Entrypoint: py + " -m nowhere.to.be.found", Timeout: longTimeout})
		if err != nil {
			t.Fatal(err)
		}
		b.has(r, "could not start", "No module named")
		b.at(b.do("n"), "main.py", 2) // back at the entrypoint that worked
	})
}

func TestEachPythonProgramCannotReadCommands(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py ask")
		b.has(b.do("c"), "hello nobody", "exit code 0")
		b = open(t, py+" tricky.py tty")
		b.has(b.do("c"), "no terminal", "exit code 0")
	})
}

func TestEachPythonOutputCannotImitateThePrompt(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py mimic")
		b.do("b tricky.py:32")
		r := b.do("c")
		b.at(r, "tricky.py", 32)
		b.has(r, "(Pdb) \n", "WRONGNONCE", "(Pdb) é漢(Pdb) é漢(Pdb) é漢")
		b.has(b.do("p after"), "1\nCurrent frame")
	})
}

func TestEachPythonTimeoutInterrupts(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py loop").withLongGrace()
		b.do("n")
		r := b.doWithin("c", shortTimeout)
		b.has(r, "The command timed out after 2 s; the program was interrupted at tricky.py:")
		if !r.TimedOut || r.Frame == nil || r.Frame.Function != "loop" {
			t.Errorf("got %+v", r)
		}
		b.has(b.do("p count > 0"), "True")
		r = b.do("n")
		if r.Frame.Function != "loop" {
			t.Errorf("after n: %+v", r.Frame)
		}
		b.do("b 38")
		b.at(b.do("c"), "tricky.py", 38)
		b.has(b.do("b numbers"), "set at tricky.py:118")
		b.has(b.do("c"), "tricky.py(38)")
		b.doWithin("cl 1 ;; c", shortTimeout)
		b.has(b.do("p numbers()"), "81\n") // the prompt of an interrupt does not stop in the functions that it calls
		b.do("cl")
		r = b.doWithin("until 400", shortTimeout)
		b.has(r, "timed out", "tricky.py:3")

		b = open(t, py+" tricky.py sleep").withLongGrace()
		b.do("n")
		r = b.doWithin("c", shortTimeout)
		b.has(r, "going to sleep", "interrupted at tricky.py:43")
		b.has(b.doWithin("!import time; time.sleep(1000)", shortTimeout), "KeyboardInterrupt", "timed out")
		b.has(b.do("p 'still here'"), "'still here'")
	})
}

func TestProgramThatIgnoresInterrupts(t *testing.T) {
	b := open(t, "python3 tricky.py stubborn")
	b.do("b numbers")
	r := b.doWithin("c", shortTimeout)
	b.has(r, "could not be interrupted", "Breakpoints are kept")
	if !r.TimedOut || r.Frame != nil || len(b.Breakpoints()) != 1 {
		t.Errorf("got %+v", r)
	}
	b.at(b.do("n"), "tricky.py", 2)
}

func TestEachPythonDeepRecursionAndBadRepr(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py recurse")
		r := b.do("c")
		b.has(r, "RecursionError", "post-mortem")
		b.has(b.do("p n > 500"), "True")
		b.has(b.do("w"), "bytes of output cut")

		b = open(t, py+" tricky.py bad")
		b.do("b 67")
		b.do("c")
		b.has(b.try("p value"), "*** the value's own __repr__ raised ValueError: no repr")
		b.has(b.try("pp value"), "ValueError: no repr")
		b.has(b.do("p number"), "1")
	})
}

func TestEachPythonThreadsAndForks(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py threads")
		b.do("b 81")
		b.at(b.do("c"), "tricky.py", 81)
		b.has(b.do("c"), "threads 4", "exit code 0")

		b = open(t, py+" tricky.py fork")
		b.do("b forked")
		b.do("b 95")
		r := b.do("c")
		b.has(r, "in child")
		b.at(r, "tricky.py", 95)
		b.has(b.do("c"), "parent goes on True", "exit code 0")
	})
}

func TestLongOutputIsTruncated(t *testing.T) {
	b := open(t, "python3 tricky.py flood")
	r := b.do("c")
	b.has(r, "line 0\n", "line 199999\n", "bytes of output cut ...]", "exit code 0")
	if len(r.Text) > 22000 {
		t.Errorf("%d bytes of text", len(r.Text))
	}
}

func TestEachPythonBreakpointsInTheProgramItself(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py own_breakpoint")
		r := b.do("c")
		if r.Frame == nil || r.Frame.Function != "own_breakpoint" {
			t.Fatalf("position %+v", r.Frame)
		}
		b.has(b.do("p x"), "41")
		b.has(b.do("c"), "x 42", "exit code 0")
	})
	b := open(t, "python3 -m pytest -q test_breakpoint.py")
	r := b.do("c")
	if r.Frame == nil || r.Frame.Function != "test_own_breakpoint" {
		t.Fatalf("position %+v", r.Frame)
	}
	b.has(b.do("c"), "1 passed", "exit code 0")
}

func TestProgramsThatLinger(t *testing.T) {
	b := open(t, "python3 tricky.py lingering")
	b.do("n")
	r := b.doWithin("c", shortTimeout)
	b.has(r, "main is done", "Threads or exit handlers of the program were still running after 2 s and were killed.", "exit code 0")
	if !r.TimedOut || r.ExitCode == nil {
		t.Errorf("got %+v", r)
	}
	r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "c", Entrypoint: "python3 tricky.py daemon", Timeout: longTimeout})
	if err != nil {
		t.Fatal(err)
	}
	b.has(r, "exit code 0")
	if r, err = b.Command(t.Context(), env.DebuggerCommand{Text: "b 138 ;; c", Entrypoint: "python3 tricky.py slow_repr", Timeout: longTimeout}); err != nil {
		t.Fatal(err)
	}
	r = b.withLongGrace().doWithin("p value", shortTimeout)
	b.has(r, "timed out after 2 s")
	b.at(r, "tricky.py", 138)
	b.has(b.do("p 2"), "2\n")
}

func TestEachPythonProgramThatClosesEverything(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py hostile")
		b.at(b.do("c"), "tricky.py", 149)
		b.has(b.do("p 'x' * 200000"), "xxxx", "bytes of output cut")
		b.has(b.do("p 1"), "1\n")
	})
}

func TestPytestsOwnDebuggerOptions(t *testing.T) {
	b := open(t, "python3 -m pytest -q --pdb tests")
	r := b.do("c")
	b.at(r, "tests/test_prices.py", 9)
	b.has(b.do("p prices"), "[Price(a), Price(b)]")
	b.has(b.do("c"), "1 failed, 1 passed", "exit code 1")
}

func TestLongOutputOfSeveralCommandsIsBounded(t *testing.T) {
	b := open(t, "python3 main.py")
	r := b.do("p 'x' * 15000 ;; p 'y' * 15000 ;; p 'z'")
	b.has(r, "The output limit was reached.", "Not run: p 'z'")
}

// A file that changed on disk is named until the program has loaded the new version. A file that
// the program has not loaded yet is not named.
func TestEachPythonChangedOnDisk(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		const note = "The program still runs the old version of "
		b := open(t, py+" main.py kiwi pear")
		source := b.read("pkg/prices.py")
		b.do("n")
		b.write("pkg/prices.py", "# new\n"+source)
		b.do("b pkg/prices.py:20")
		r := b.do("c")
		b.at(r, "pkg/prices.py", 20)
		b.hasNot(r, note)
		b.write("pkg/prices.py", source)
		b.write("main.py", b.read("main.py")+"\n")
		b.has(b.do("p 1"), note+"main.py, pkg/prices.py; use restart")
		b.hasNot(b.do("restart"), note)
	})
}
