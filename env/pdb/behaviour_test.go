package pdb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// doUnder runs a command with an entrypoint.
func (b *testDebugger) doUnder(entrypoint, command string) env.DebuggerReply {
	b.t.Helper()
	r, err := b.Command(b.t.Context(), env.DebuggerCommand{Text: command, Entrypoint: entrypoint, Timeout: longTimeout})
	if err != nil {
		b.t.Fatalf("%q under %q: %v", command, entrypoint, err)
	}
	b.t.Logf("[%s] (Pdb) %s\n%s", entrypoint, command, r.Text)
	if forbiddenText.MatchString(r.Text) {
		b.t.Errorf("%q under %q: text that must not be shown in %q", command, entrypoint, r.Text)
	}
	return r
}

// This debugger replaces a debugger in the entrypoint.
func TestDebuggerInTheEntrypointIsReplaced(t *testing.T) {
	for _, entry := range []string{"python3 main.py", "python3 -m pdb main.py", "python3 -m pdb -c continue main.py"} {
		b := open(t, entry)
		b.at(b.do("n"), "main.py", 2)
		b.has(b.do("c"), "total is 8", "exit code 0")
	}
}

func TestBreakpointsAreSortedByFileAndLine(t *testing.T) {
	b := open(t, "python3 main.py")
	b.has(b.do("b"), "No breakpoints are set.")
	b.do("b pkg/prices.py:19 ;; b main.py:14 ;; b main.py:8, names ;; b pkg/prices.py:6")
	b.has(b.do("b"), "Breakpoints:\n3  main.py:8, if names\n2  main.py:14\n4  pkg/prices.py:6\n1  pkg/prices.py:19\n")
	want := []schemas.Breakpoint{
		{File: "main.py", Line: 8, Condition: "names", Enabled: true}, {File: "main.py", Line: 14, Enabled: true},
		{File: "pkg/prices.py", Line: 6, Enabled: true}, {File: "pkg/prices.py", Line: 19, Enabled: true},
	}
	if d := cmp.Diff(want, b.Breakpoints()); d != "" {
		t.Errorf("breakpoints (-want +got):\n%s", d)
	}
}

func TestBreakpointsByRelativeOrAbsolutePath(t *testing.T) {
	b := open(t, "python3 main.py")
	b.has(b.do("b pkg/prices.py:19"), "Breakpoint 1 set at pkg/prices.py:19")
	b.has(b.do("b "+workdir+"/pkg/prices.py:19"), "Breakpoint 1 was already there")
	b.has(b.do("b ./pkg/prices.py:19"), "Breakpoint 1 was already there")
	b.has(b.try("cl "+workdir+"/pkg/prices.py:20"), "there is no breakpoint")
	b.has(b.try("cl other.py:19"), "there is no breakpoint")
	b.has(b.do("cl "+workdir+"/pkg/prices.py:19"), "Breakpoint 1 at pkg/prices.py:19 deleted")
}

func TestEntrypointPriority(t *testing.T) {
	b := open(t, "python3 main.py task")
	b.has(b.do("n"), "python3 main.py task")
	b.has(b.doUnder("python3 main.py call", "n"), "The entrypoint has changed, so a new session was started.", "python3 main.py call")
	b.at(b.doUnder("python3 main.py call", "n"), "main.py", 4) // the session continues
	b.at(b.do("n"), "main.py", 7)
	b.has(b.do("restart"), "python3 main.py call")
	r := b.doUnder("python3 missing.py", "n")
	b.has(r, "could not start", "No such file")
	if !r.IsError || b.Frame() != nil {
		t.Errorf("got %+v, position %+v", r, b.Frame())
	}
	b.has(b.do("n"), "python3 main.py call")
}

func TestEmptyCommandIsRefused(t *testing.T) {
	b := open(t, "python3 main.py")
	for _, command := range []string{"", "  \n\t", ";;", " ;; ;; "} {
		r := b.try(command)
		b.has(r, "The command is empty. Send a pdb command, for example: b FILE:LINE")
		if !r.IsError || b.Frame() != nil {
			t.Errorf("%q: %+v", command, r)
		}
	}
}

// The commands of a call run until one fails or the program ends.
func TestCommandsRunUntilOneFails(t *testing.T) {
	b := open(t, "python3 main.py")
	b.at(b.do("b 13; c"), "main.py", 13)
	b.has(b.do("p names; p len(prices)"), "['apple', 'fig']\n2\n")
	b.has(b.do("p 'a;b'"), "'a;b'")
	b.at(b.do("n\nn"), "main.py", 15)
	r := b.try("p nowhere ;; n ;; p 1")
	b.has(r, "*** NameError", "Not run: n ;; p 1")
	b.at(r, "main.py", 15)
	b.has(b.do("c ;; p 1"), "exit code 0", "Not run: p 1")
}

func TestBareBreakListsWithoutASession(t *testing.T) {
	b := open(t, "python3 main.py")
	for _, command := range []string{"b", "break", "tbreak"} {
		b.has(b.do(command), "No breakpoints are set.")
	}
	b.d.breakpoints.set(schemas.Breakpoint{File: "main.py", Line: 13, Enabled: true})
	if r := b.do("b"); r.Text != "Breakpoints:\n1  main.py:13" || b.Frame() != nil {
		t.Errorf("got %q, position %+v", r.Text, b.Frame())
	}
}

// The program does not restart; it continues without breakpoints.
func TestBareClearRemovesAll(t *testing.T) {
	b := open(t, "python3 main.py")
	b.do("b 13 ;; b pkg/prices.py:19 ;; b 14 ;; c")
	b.has(b.do("cl"), "All breakpoints are deleted (3).", "Current frame: main.py:13")
	b.hasLines()
	b.has(b.do("clear"), "All breakpoints are deleted (0).")
	b.has(b.do("c"), "total is 8", "exit code 0")
}

func TestEachPythonOtherErrorsAreThoseOfPdb(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" main.py")
		for command, want := range map[string]string{
			"p nothing":      "*** NameError: name 'nothing' is not defined",
			"p 1 +":          "*** SyntaxError: ",
			"!x = ":          "*** SyntaxError: ",
			"up":             "*** Oldest frame",
			"down":           "*** Newest frame",
			"until 0":        `*** "until" line number is smaller than current line number`,
			"jump x":         `*** The 'jump' command requires a line number`,
			"list a b":       "*** ",
			"b nowhere.py:1": "*** No file nowhere.py",
			"undisplay 9":    "*** not displaying 9",
			"unalias nobody": "",
			"retval":         "*** Not yet returned!",
		} {
			r := b.try(command)
			b.has(r, want)
			if want != "" && !r.IsError {
				t.Errorf("%q is not an error", command)
			}
			b.at(r, "main.py", 1)
		}
	})
}

func TestObservationIncludesTheContext(t *testing.T) {
	b := open(t, "python3 main.py")
	r := b.do("b 13 ;; c")
	b.has(r, "Current frame: main.py:13 in run\n  8    \t    prices = []", " 13 B->\t    result = total(prices)")
	if strings.Count(r.Text, "result = total(prices)") != 2 { // pdb's own line and the listing
		t.Errorf("the context is shown more than once:\n%s", r.Text)
	}
	for _, command := range []string{"l", "list 1, 5", "ll", "source total"} {
		if r := b.do(command); strings.Contains(r.Text[strings.Index(r.Text, "Current frame"):], "\n") {
			t.Errorf("%s is followed by another listing:\n%s", command, r.Text)
		}
	}
	r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "p 1", NoListing: true})
	if want := "1\nCurrent frame: main.py:13 in run"; err != nil || r.Text != want {
		t.Errorf("without listing: %q, %v, want %q", r.Text, err, want)
	}
}

func TestObservationLayout(t *testing.T) {
	b := open(t, "python3 long.py")
	b.write("long.py", strings.Repeat("#\n", 996)+"x = 1\ny = 2\nz = 3\nprint(x)\n"+strings.Repeat("#\n", 3)+"w = 4")
	r := b.do("b 1000 ;; c ;; n")
	want := `The program is paused before its first line: python3 long.py
> long.py(997)<module>()
-> x = 1
Breakpoint 1 set at long.py:1000
Breakpoint 1 hit.
> long.py(1000)<module>()
-> print(x)
1
> long.py(1004)<module>()
-> w = 4
Current frame: long.py:1004 in <module>
 999    	z = 3
1000 B  	print(x)
1001    	#
1002    	#
1003    	#
1004  ->	w = 4`
	if d := cmp.Diff(want, r.Text); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"long.py:999-1004"}, r.Targets); d != "" {
		t.Error(d)
	}
}

func TestEndOfTheProgramIsReported(t *testing.T) {
	for _, entry := range []string{"python3 -m pytest tests", "python3 -m pytest -q tests", "python3 -m pytest -q -s tests"} {
		b := open(t, entry)
		r := b.do("c")
		b.has(r, "1 failed, 1 passed", "The program has ended with exit code 1. Breakpoints are kept (0). "+
			"The next pdb command starts it again from the beginning.")
		if *r.ExitCode != 1 || r.Frame.Event != "finished" || b.Frame() != nil {
			t.Errorf("got %+v", r)
		}
		b.has(b.do("n"), "The program had ended, so it was started again.")
	}
}

func TestBreakpointsPersist(t *testing.T) {
	b := open(t, "python3 main.py")
	b.do("b 13 ;; b pkg/prices.py:19, result > 2 ;; c")
	b.has(b.do("c ;; c"), "exit code 0. Breakpoints are kept (2).")
	b.at(b.do("c"), "main.py", 13)
	b.at(b.do("c"), "pkg/prices.py", 19)
	b.has(b.do("restart"), "The program was restarted.")
	b.at(b.do("c"), "main.py", 13)
	b.has(b.do("q"), "The debugging session has ended. Breakpoints are kept (2).")
	b.at(b.doUnder("python3 main.py other", "c"), "main.py", 13)

	// With Forget, breakpoints end with their program.
	forget := func(command string) env.DebuggerReply {
		r, err := b.Command(t.Context(), env.DebuggerCommand{Text: command, Forget: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	b.has(forget("cl 2 ;; c"), "exit code 0. Its breakpoints are removed.")
	b.has(forget("c"), "total is 5", "exit code 0")
	b.at(forget("b 14 ;; c"), "main.py", 14)
}

// A timeout interrupts the program where it is; the session continues.
func TestTimeoutKeepsTheSession(t *testing.T) {
	b := open(t, "python3 tricky.py loop").withLongGrace()
	b.do("b tricky.py:43 ;; n")
	r := b.doWithin("c", shortTimeout)
	b.has(r, "The command timed out after 2 s; the program was interrupted at tricky.py:3")
	if !r.TimedOut || b.Frame() == nil {
		t.Errorf("got %+v", r)
	}
	b.hasLines(43)
	b.has(b.do("p count > 0"), "True")
}

// The same commands give the same observations in a new session.
func TestReplayGivesTheSameObservations(t *testing.T) {
	var texts [2][]string
	for i := range texts {
		b := open(t, "python3 main.py kiwi pear")
		for _, command := range []string{"b total ;; c", "p prices", "n", "n", "up", "p nothing", "w", "cl 1", "c", "p 1"} {
			texts[i] = append(texts[i], b.try(command).Text)
		}
	}
	if d := cmp.Diff(texts[0], texts[1]); d != "" {
		t.Errorf("(-first +second):\n%s", d)
	}
}

func TestEachPythonCrashShowsItsTraceback(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" -c 'import broken'")
		r := b.do("c")
		b.has(r, "IndentationError: ", "broken.py", "post-mortem")
		b.has(b.do("p 1 + 1"), "2\n")
		b.has(b.do("c"), "The program has ended with exit code 1.")
		b = open(t, py+" tricky.py crash")
		b.has(b.do("c"), "ZeroDivisionError: division by zero", "Current frame: tricky.py:9 in crash (post-mortem")
		b.has(b.do("p numbers"), "{'zero': 0}")
		b.at(b.do("up 1"), "tricky.py", 153)
		b.at(b.do("down"), "tricky.py", 9)
		b.has(b.do("restart"), "The program was restarted.")
	})
}
