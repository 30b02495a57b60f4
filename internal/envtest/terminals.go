package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

var terminalChecks = []check{
	{name: "terminal with pty", fn: terminalBasics(true)},
	{name: "terminal with pipes", fn: terminalBasics(false)},
	{name: "long lines", fn: longLines},
	{name: "interrupt", fn: interrupt},
	{name: "end of a terminal", fn: terminalEnd},
	{name: "kill children since a mark", fn: killSinceMark},
	{name: "kill children leaves others alone", fn: killLeavesOthers},
	{name: "input that is not read", fn: unreadInput},
	{name: "flood of output", fn: terminalFloods},
}

func open(t *testing.T, f *fixture, pty bool, args ...string) env.Terminal {
	t.Helper()
	term, err := f.Open(t.Context(), env.TerminalSpec{Args: args, PTY: pty, Env: []string{"PS1=", "PS2="}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Close(context.WithoutCancel(t.Context())) })
	return term
}

func write(t *testing.T, term env.Terminal, text string) {
	t.Helper()
	if err := term.Write(t.Context(), []byte(text)); err != nil {
		t.Fatalf("writing %q: %v", text, err)
	}
}

func terminalBasics(pty bool) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		term := open(t, f, pty, "sh", "-c", `test -t 0 && echo tty; while read -r line; do echo "got $line" >&2; done; echo bye; exit 3`)
		if pty {
			readUntil(t, term, "tty\n")
		}
		for i := range 3 {
			write(t, term, fmt.Sprintf("line %d\n", i))
			if out := readUntil(t, term, fmt.Sprintf("got line %d\n", i)); strings.Contains(out, "\r") || strings.HasPrefix(out, "line") {
				t.Errorf("echo or carriage return in %q", out)
			}
		}
		p, err := term.Read(t.Context(), 10*time.Millisecond)
		if p != nil || err != nil {
			t.Errorf("reading silence: %q, %v", p, err)
		}
		if _, ended := term.Exit(); ended {
			t.Error("ended too early")
		}
		if err := term.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, ended := term.Exit(); !ended {
			t.Error("not ended after closing")
		}
	}
}

func longLines(t *testing.T, f *fixture) {
	term := open(t, f, true, "python3", "-u", "-c", "import sys\nfor l in sys.stdin: print(len(l), l.count('x'), flush=True)")
	for _, n := range []int{5000, 200_000, 3} {
		write(t, term, strings.Repeat("x", n)+"\n")
		readUntil(t, term, fmt.Sprintf("%d %d\n", n+1, n))
	}
}

func interrupt(t *testing.T, f *fixture) {
	const program = `
import time
while True:
    try:
        print("ready", flush=True)
        while True:
            time.sleep(0.02) # a signal just before a long sleep would have no effect until its end
    except KeyboardInterrupt:
        print("interrupted", flush=True)
`
	for _, pty := range []bool{true, false} {
		term := open(t, f, pty, "python3", "-c", program)
		readUntil(t, term, "ready")
		for range 2 {
			if err := term.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
			readUntil(t, term, "interrupted\nready\n")
		}
	}
}

func terminalEnd(t *testing.T, f *fixture) {
	for _, pty := range []bool{true, false} {
		term := open(t, f, pty, "sh", "-c", "sleep "+nap1+" & echo last words; exit 5")
		out := ""
		for {
			p, err := term.Read(t.Context(), 10*time.Second)
			out += string(p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if code, ended := term.Exit(); code != 5 || !ended || out != "last words\n" {
			t.Errorf("pty %v: exit %d, ended %v, output %q", pty, code, ended, out)
		}
		if err := term.Write(t.Context(), []byte("anyone?\n")); err != nil {
			t.Errorf("writing after the end: %v", err)
		}
		if _, err := term.Read(t.Context(), time.Second); !errors.Is(err, io.EOF) {
			t.Errorf("reading after the end: %v", err)
		}
		for range 2 {
			if err := term.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		f.waitGone(t, nap1)
	}
	if _, err := f.Open(t.Context(), env.TerminalSpec{Args: []string{"no-such-program"}}); err == nil {
		t.Error("a terminal without a program opened")
	}
}

func killSinceMark(t *testing.T, f *fixture) {
	for _, pty := range []bool{true, false} {
		term := open(t, f, pty, "bash", "--norc", "--noprofile")
		write(t, term, "keep=me; sleep "+nap1+" >/dev/null & echo started\n")
		readUntil(t, term, "started")
		f.waitForProcesses(t, nap1, 1)
		mark, err := term.Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write(t, term, "setsid sh -c 'trap \"\" TERM; sleep "+nap2+"; sleep "+nap2+"' >/dev/null 2>&1 & (sleep "+nap2+" &); trap '' INT; echo on; sleep "+nap2+"\n")
		readUntil(t, term, "on\n")
		f.waitForProcesses(t, nap2, 4) // by then all of them have started
		if err := term.KillChildren(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
		f.waitGone(t, nap2)
		if running := f.processes(t, nap1); len(running) != 1 {
			t.Errorf("the process from before the mark: %q", running)
		}
		write(t, term, "echo $keep still\n")
		readUntil(t, term, "me still\n")
		if err := term.KillChildren(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		f.waitGone(t, nap1)
		write(t, term, "echo $keep here\n")
		readUntil(t, term, "me here\n")
		if err := term.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func killLeavesOthers(t *testing.T, f *fixture) {
	a := open(t, f, true, "bash", "--norc", "--noprofile")
	b := open(t, f, true, "bash", "--norc", "--noprofile")
	mark, err := a.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, b, "sleep "+nap1+" >/dev/null & echo up\n")
	readUntil(t, b, "up\n")
	f.waitForProcesses(t, nap1, 1)
	write(t, a, "sleep "+nap2+" >/dev/null & echo up\n")
	readUntil(t, a, "up\n")
	if err := a.KillChildren(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	f.waitGone(t, nap2)
	if running := f.processes(t, nap1); len(running) != 1 {
		t.Errorf("the other terminal's child: %q", running)
	}
	write(t, b, "echo fine\n")
	readUntil(t, b, "fine\n")
}

func unreadInput(t *testing.T, f *fixture) {
	term := open(t, f, true, "sleep", "30")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := term.Write(ctx, make([]byte, 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("writing to a program that does not read: %v", err)
	}
	if out := f.sh(t, "echo alive"); out != "alive\n" {
		t.Errorf("afterwards: %q", out)
	}
}

func terminalFloods(t *testing.T, f *fixture) {
	term := open(t, f, true, "sh", "-c", "seq 1 2000000; echo end; sleep 60")
	total := 0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p, err := term.Read(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		total += len(p)
		if strings.HasSuffix(string(p), "end\n") {
			break
		}
	}
	if want := 14_888_896 + 4; total != want {
		t.Errorf("%d bytes arrived, want %d", total, want)
	}
}
