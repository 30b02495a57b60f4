package hostile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/hostile"
)

func run(t *testing.T, sb env.Sandbox, c env.Command) env.Result {
	t.Helper()
	r, err := sb.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sh(script string, timeout time.Duration) env.Command {
	return env.Command{Args: []string{"sh", "-c", script}, Timeout: timeout}
}

// All drivers have the same contract: they run a program with arguments or a shell script,
// and return exit code and output separately from errors.
func TestDriversHaveTheSameContract(t *testing.T) {
	for _, kind := range []string{"bubblewrap", "local"} {
		sb := envtest.Sandbox(t, kind, env.SandboxSpec{})
		list := run(t, sb, env.Command{Args: []string{"printf", "%s\n", "a b"}})
		text := run(t, sb, sh("true && printf '%s\n' 'a b'", 0))
		if string(list.Output) != "a b\n" || string(text.Output) != "a b\n" || list.ExitCode+text.ExitCode != 0 {
			t.Errorf("%s: %q and %q", kind, list.Output, text.Output)
		}
		if r := run(t, sb, sh("echo kept; exit 3", 0)); r.ExitCode != 3 || string(r.Output) != "kept\n" || r.TimedOut {
			t.Errorf("%s: %+v", kind, r)
		}
		if err := sb.WriteFile(t.Context(), "copied", []byte("content"), 0); err != nil {
			t.Error(err)
		}
		if r := run(t, sb, sh("cat copied", 0)); string(r.Output) != "content" {
			t.Errorf("%s: the file contains %q", kind, r.Output)
		}
	}
}

// runUntilTimeout runs a script that prints something and then hangs. It repeats the run with
// longer timeouts until the script has printed before the timeout.
func runUntilTimeout(t *testing.T, sb env.Sandbox, c env.Command) env.Result {
	t.Helper()
	for c.Timeout = 500 * time.Millisecond; ; c.Timeout *= 2 {
		if r := run(t, sb, c); r.Total > 0 || c.Timeout > time.Minute {
			return r
		}
	}
}

// Output beyond the cap does not fail: both ends are kept and the rest is counted, even if
// the command times out.
func TestOutputIsCapped(t *testing.T) {
	sb := envtest.Sandbox(t, "bubblewrap", env.SandboxSpec{})
	c := sh("for i in 0 1 2 3 4 5 6 7 8 9; do printf 0123456789; done", 0)
	c.MaxOutput = 50
	if r := run(t, sb, c); r.Total != 100 || len(r.Output) != 50 || r.Head != 25 || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	c = sh("printf '%0100d' 0; sleep 1000", 0)
	c.MaxOutput = 50
	if r := runUntilTimeout(t, sb, c); r.Total != 100 || len(r.Output) != 50 || !r.TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestTimeoutKeepsPartialOutput(t *testing.T) {
	for _, kind := range []string{"bubblewrap", "local"} {
		r := runUntilTimeout(t, envtest.Sandbox(t, kind, env.SandboxSpec{}), sh("echo partial; sleep 1000; echo never", 0))
		if !r.TimedOut || string(r.Output) != "partial\n" {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// Two terminals share nothing, and closing one ends only its own processes.
func TestTerminalsAreIsolated(t *testing.T) {
	sb := envtest.Sandbox(t, "bubblewrap", env.SandboxSpec{})
	var terms [2]env.Terminal
	for i := range terms {
		term, err := sb.Open(t.Context(), env.TerminalSpec{Args: []string{"bash", "--norc", "--noprofile"}})
		if err != nil {
			t.Fatal(err)
		}
		terms[i] = term
	}
	ask := func(i int, line, want string) {
		t.Helper()
		if err := terms[i].Write(t.Context(), []byte(line+"\n")); err != nil {
			t.Fatal(err)
		}
		got := ""
		for end := time.Now().Add(30 * time.Second); !strings.HasSuffix(got, want) && time.Now().Before(end); {
			p, err := terms[i].Read(t.Context(), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			got += string(p)
		}
		if got != want {
			t.Fatalf("%q answered %q, want %q", line, got, want)
		}
	}
	ask(0, "x=one; sleep 1234 & echo $x", "one\n")
	ask(1, "echo [$x]", "[]\n")
	if err := terms[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(1, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep 1234 ' ; true", "0\n")
}

// A timeout ends all processes that hold the pipe, not only the shell, and all background
// jobs.
func TestTimeoutEndsGrandchildren(t *testing.T) {
	for _, kind := range []string{"bubblewrap", "local"} {
		sb := envtest.Sandbox(t, kind, env.SandboxSpec{})
		// It prints once both process ids are in the file.
		r := runUntilTimeout(t, sb, sh(">pids; sleep 1000 & echo $! >>pids; setsid sh -c 'echo $$ >>pids; echo on; sleep 1000'", 0))
		if !r.TimedOut || r.Wall > 5*time.Minute {
			t.Errorf("%s: %+v", kind, r)
		}
		const ask = `for p in $(cat pids); do echo; kill -0 $p 2>/dev/null && ! grep -q ') Z' /proc/$p/stat && echo alive; done; true`
		if r := run(t, sb, sh(ask, 0)); string(r.Output) != "\n\n" { // two were started, none is alive
			t.Errorf("%s: %q", kind, r.Output)
		}
	}
}

// A timeout kills a program that ignores all signals that can be ignored.
func TestTimeoutKillsProgramsThatIgnoreSignals(t *testing.T) {
	r := run(t, envtest.Sandbox(t, "bubblewrap", env.SandboxSpec{}), sh("trap '' TERM INT HUP; while :; do sleep 1000; done", time.Second))
	if !r.TimedOut || r.ExitCode != 137 || r.Wall > 5*time.Minute {
		t.Errorf("%+v", r)
	}
}

// 124 is an exit code like any other.
func TestExitCode124IsNotATimeout(t *testing.T) {
	p := newHarness(t, "bubblewrap")
	if r := run(t, p.Sandbox(), sh("exit 124", 0)); r.TimedOut || r.ExitCode != 124 {
		t.Errorf("%+v", r)
	}
	a := p.Call(t.Context(), "bash", map[string]any{"command": "(exit 124)"}, hostile.DefaultLimit)
	if a.TimedOut || a.Exit == nil || *a.Exit != 124 || a.Text != "[exit code 124]\n" {
		t.Errorf("%+v", a)
	}
}

// Closing a sandbox ends all its terminals.
func TestCloseEndsEveryTerminal(t *testing.T) {
	sb := envtest.Sandbox(t, "local", env.SandboxSpec{})
	var all []env.Terminal
	for range 5 {
		term, err := sb.Open(t.Context(), env.TerminalSpec{Args: []string{"sh", "-c", "echo $$; sleep 1000"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, term)
	}
	var pids []string
	for _, term := range all {
		p, err := term.Read(t.Context(), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, strings.TrimSpace(string(p)))
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := envtest.Sandbox(t, "local", env.SandboxSpec{}) // sees the host's processes
	if r := run(t, other, sh("for p in "+strings.Join(pids, " ")+"; do kill -0 $p 2>/dev/null && echo $p; done; true", 0)); len(r.Output) > 0 {
		t.Errorf("alive: %q of %q", r.Output, pids)
	}
}

// Neither this process nor the guest ever holds the whole output of a command. If the sandbox
// runs the command, only the part that is kept leaves the sandbox. If a shell runs it, the
// middle of the output is dropped.
func TestOutputIsBoundedAtItsSource(t *testing.T) {
	p := newHarness(t, "bubblewrap")
	const size = 100_000_000
	c := sh("head -c 100000000 /dev/zero", time.Minute)
	c.MaxOutput = 1000
	peak := func() (kB int) {
		r := run(t, p.Sandbox(), sh("grep VmHWM /proc/1/status", 0))
		if _, err := fmt.Sscanf(string(r.Output), "VmHWM: %d kB", &kB); err != nil {
			t.Fatalf("%v: %q", err, r.Output)
		}
		return kB
	}
	guest := peak()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if r := run(t, p.Sandbox(), c); r.Total != size || len(r.Output) != 1000 {
		t.Errorf("%d bytes kept of %d", len(r.Output), r.Total)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > size/10 {
		t.Errorf("the host allocated %d bytes", n)
	}
	// The command waits after its output, so that the host is measured when it has nothing left
	// to read. What it has read and dropped is garbage then.
	const wait = "touch written; while [ ! -e measured ]; do sleep 0.1; done"
	held := make(chan uint64)
	go func() {
		defer close(held)
		c := sh("while [ ! -e written ]; do sleep 0.1; done", time.Minute)
		if r, err := p.Sandbox().Run(t.Context(), c); err != nil || r.TimedOut {
			t.Errorf("%+v, %v", r, err)
		}
		var m runtime.MemStats
		for start := time.Now(); time.Since(start) < 30*time.Second; {
			runtime.GC()
			if runtime.ReadMemStats(&m); m.HeapAlloc <= after.HeapAlloc+size/10 {
				break
			}
		}
		if err := p.Sandbox().WriteFile(t.Context(), "measured", nil, 0); err != nil {
			t.Error(err)
		}
		held <- m.HeapAlloc
	}()
	a := p.Call(t.Context(), "bash", map[string]any{"command": "head -c 100000000 /dev/zero | tr '\\0' x; " + wait}, 5*time.Minute)
	if n := <-held; n > after.HeapAlloc+size/10 {
		t.Errorf("the host held %d bytes more", n-after.HeapAlloc)
	}
	if len(a.Text) > 70_000 || !strings.Contains(a.Text, "100000000") || a.IsError {
		t.Errorf("%d bytes shown", len(a.Text))
	}
	if n := peak() - guest; n > size/2/1000 {
		t.Errorf("the guest grew by %d kB", n)
	}
}
