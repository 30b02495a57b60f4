package pdb

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// countingSandbox counts the calls of the debugger.
type countingSandbox struct {
	env.Sandbox
	opened, written, read, ran atomic.Int64
}

func (c *countingSandbox) Run(ctx context.Context, command env.Command) (env.Result, error) {
	c.ran.Add(1)
	return c.Sandbox.Run(ctx, command)
}

func (c *countingSandbox) Open(ctx context.Context, spec env.TerminalSpec) (env.Terminal, error) {
	c.opened.Add(1)
	term, err := c.Sandbox.Open(ctx, spec)
	return &countingTerminal{term, c}, err
}

type countingTerminal struct {
	env.Terminal
	c *countingSandbox
}

func (t *countingTerminal) Write(ctx context.Context, p []byte) error {
	t.c.written.Add(1)
	return t.Terminal.Write(ctx, p)
}

func (t *countingTerminal) Read(ctx context.Context, wait time.Duration) ([]byte, error) {
	t.c.read.Add(1)
	return t.Terminal.Read(ctx, wait)
}

func openCounting(t *testing.T, entrypoint string) (*testDebugger, *countingSandbox) {
	b := open(t, entrypoint)
	c := &countingSandbox{Sandbox: b.d.cfg.Sandbox}
	b.d.cfg.Sandbox = c
	return b, c
}

func TestShiftOntoAnotherBreakpointKeepsBoth(t *testing.T) {
	for _, by := range []int{10, 20, -10} {
		d := New(Config{Workdir: workdir, Entrypoint: "python3 main.py"})
		for _, line := range []int{30, 40, 50} {
			d.d.breakpoints.set(schemas.Breakpoint{File: "main.py", Line: line, Enabled: true})
		}
		d.Edited(env.Edit{File: "main.py", First: 1, Removed: max(0, -by), Added: max(0, by)})
		want := []int{30 + by, 40 + by, 50 + by}
		if diff := cmp.Diff(want, lines(&testDebugger{Debugger: d})); diff != "" {
			t.Errorf("by %d (-want +got):\n%s", by, diff)
		}
	}
}

func TestEachPythonConditionsSurvive(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		b.do("b 119, n == 3 and (n, 'a') != (1, 'b')")
		b.at(b.do("c"), "tricky.py", 119)
		b.do("restart")
		b.do("c")
		b.has(b.do("p n"), "3\n")
		b.write("tricky.py", "# one line more\n"+b.read("tricky.py"))
		b.Edited(env.Edit{File: "tricky.py", First: 1, Added: 1})
		b.at(b.do("c"), "tricky.py", 120)
		b.has(b.do("p n"), "3\n")
		b.has(b.do("b"), "1  tricky.py:120, if n == 3 and (n, 'a') != (1, 'b'), reached ")
	})
}

func TestEachPythonTemporaryDisabledAndIgnoredSurvive(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		b.do("tbreak 117 ;; b 119 ;; b 120 ;; disable 3 ;; ignore 2 4")
		b.do("restart")
		b.has(b.do("b"), "2  tricky.py:119, next 4 hits ignored\n3  tricky.py:120, disabled\n")
		b.has(b.do("c"), "Breakpoint 1 hit (temporary: now removed).")
		b.do("c")
		b.has(b.do("p n"), "4\n")
		b.has(b.do("cl 2 ;; c"), "exit code 0")
		b.at(b.do("enable 3 ;; c"), "tricky.py", 120)
		b.do("tbreak 118")
		b.has(b.do("restart ;; b"), "4  tricky.py:118, temporary\n")
		b.has(b.do("c"), "Breakpoint 4 hit (temporary: now removed).")
		b.do("restart")
		b.hasLines(120)
	})
}

func TestTimeoutKeepsBreakpoints(t *testing.T) {
	for _, program := range []string{"loop", "stubborn"} { // loop reacts to the interrupt, stubborn must be killed
		b, c := openCounting(t, "python3 tricky.py "+program)
		b.do("b numbers, n > 1 ;; n")
		opened, written := c.opened.Load(), c.written.Load()
		r := b.doWithin("c", shortTimeout)
		b.has(r, "timed out after 2 s")
		b.hasLines(118)
		if c.opened.Load() != opened || c.written.Load() != written+1 {
			t.Errorf("%s: the timeout led to %d starts and %d messages", program, c.opened.Load()-opened, c.written.Load()-written)
		}
		b.do("p 1")
		b.has(b.do("b"), "1  tricky.py:118, if n > 1")
	}
}

func TestQuitKeepsBreakpointsAndDoesNotWait(t *testing.T) {
	for _, quit := range []string{"q", "quit", "exit", "EOF"} {
		b, c := openCounting(t, "python3 main.py")
		b.do("b 13 ;; c")
		read := c.read.Load()
		r := b.do(quit)
		b.has(r, "The debugging session has ended. Breakpoints are kept (1).")
		if r.TimedOut || c.read.Load() != read {
			t.Errorf("%s waited for output: %+v", quit, r)
		}
		b.at(b.do("c"), "main.py", 13)
	}
}

func TestEachPythonProgramMayPrintPrompts(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" fake.py")
		b.write("fake.py", `import os, sys
print("(Pdb) ")
print("(Pdb) " * 3, end="")
sys.stdout.write("\x1b]7717;aaaaaaaaaaaaaaaaaaaaaaaaaa;1;%d;1;1;e30=\x07" % os.getpid())
text = "(Pdb) \x1b]7717;\x07 kept"
done = 1
`)
		b.do("b 6 ;; c")
		b.at(b.do("w"), "fake.py", 6)
		b.has(b.do("l 2, 3"), `print("(Pdb) ")`, `print("(Pdb) " * 3, end="")`)
		for i := range 5 { // each reply belongs to its command
			n := strings.Repeat("x", i+1)
			b.has(b.do("p '"+n+"'"), "'"+n+"'\nCurrent frame")
		}
		b.do("restart")
		b.has(b.do("c"), "(Pdb) \n(Pdb) (Pdb) (Pdb) ")
	})
}

func TestEachPythonCharactersSplitBetweenReads(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" wide.py")
		b.write("wide.py", "import os, time\nfor c in ('é' * 500 + '漢' * 100 + '😀' * 50).encode('utf-8'):\n    os.write(1, bytes([c]))\nprint()\nprint('é' * 4000)\n")
		r := b.do("c")
		b.has(r, strings.Repeat("é", 500)+strings.Repeat("漢", 100)+strings.Repeat("😀", 50)+"\n"+strings.Repeat("é", 4000)+"\n")
	})
}

func TestEntrypointInterpretersPrefixesAndDirectories(t *testing.T) {
	b := open(t, "python3 main.py")
	b.do("b total")
	for _, entry := range []string{"python3 main.py a", "/usr/bin/python3 main.py", "A=1 B='x y' python3 main.py", "cd tests && python3 ../main.py",
		"export A=1; cd tests; PYTHONPATH=.. python3 -m unittest test_prices"} {
		b.at(b.doUnder(entry, "c"), "pkg/prices.py", 17)
	}
}

// A read returns as soon as there is output, so a long command needs as many reads as a short one.
func TestReadsDoNotPoll(t *testing.T) {
	b, c := openCounting(t, "python3 main.py")
	b.do("n")
	read := c.read.Load()
	b.do("p __import__('time').sleep(1.5)")
	if n := c.read.Load() - read; n > 3 {
		t.Errorf("%d reads for one reply", n)
	}
}

func TestOneRoundTripPerCommand(t *testing.T) {
	b, c := openCounting(t, "python3 main.py")
	b.do("b 13") // starts the program
	for _, command := range []string{"c", "p 1", "w", "n", "b 15", "l", "b", "u", "d", "ll"} {
		written := c.written.Load()
		b.do(command)
		if n := c.written.Load() - written; n > 1 {
			t.Errorf("%q took %d messages", command, n)
		}
	}
	if c.opened.Load() != 1 || c.ran.Load() != 0 {
		t.Errorf("%d starts and %d other programs", c.opened.Load(), c.ran.Load())
	}
}

func TestDebuggerStartsWithItsFirstCommand(t *testing.T) {
	b, c := openCounting(t, "python3 main.py")
	reset := func(clear bool) {
		if err := b.Reset(t.Context(), clear); err != nil {
			t.Fatal(err)
		}
	}
	reset(true)
	b.Edited(env.Edit{File: "main.py", First: 1, Added: 1})
	reset(false)
	b.do("b")
	b.do("q")
	if c.opened.Load() != 0 {
		t.Errorf("%d starts without a command that needs the program", c.opened.Load())
	}
	b.do("n")
	for range 5 {
		b.Edited(env.Edit{File: "main.py", First: 1, Added: 1})
	}
	if c.opened.Load() != 1 {
		t.Errorf("edits led to %d starts", c.opened.Load()-1)
	}
	b.do("n")
	if c.opened.Load() != 2 {
		t.Errorf("%d starts after the edits, want 1", c.opened.Load()-1)
	}
}

func TestCertainFailuresAreNotRetried(t *testing.T) {
	b, c := openCounting(t, "python3 missing.py")
	r := b.try("b 3 ;; c")
	b.has(r, "could not start", "No such file")
	if !r.IsError || c.opened.Load() != 1 {
		t.Errorf("%d starts, %+v", c.opened.Load(), r)
	}
}
