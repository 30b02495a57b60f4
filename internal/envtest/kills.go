package envtest

import (
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

var killChecks = []check{
	{name: "timeout kills programs that ignore TERM", fn: timeoutKills(`trap '' TERM INT HUP; while :; do sleep ` + nap1 + `; done`)},
	{name: "timeout kills children", fn: timeoutKills(`sleep ` + nap1 + ` & sleep ` + nap1 + ` & wait`)},
	{name: "timeout kills double-forked processes", fn: timeoutKills(`(setsid sh -c 'trap "" TERM; sleep ` + nap1 + `; sleep ` + nap1 + `' >/dev/null 2>&1 &) ; sleep ` + nap1)},
	{name: "timeout kills a daemon without environment", fn: timeoutKills(`
python3 - <<'END'
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        os.execve("/bin/sleep", ["sleep", "` + nap1 + `"], {})
    os._exit(0)
time.sleep(` + nap1 + `)
END`)},
	{name: "timeout kills a process whose first thread has ended", fn: firstThreadEnded},
	{name: "timeout during endless output", fn: timeoutKills(`yes ` + nap1)},
	{name: "background child does not block the command", fn: backgroundChild},
	{name: "zombies are reaped", fn: zombies},
	{name: "close ends all", fn: closeEndsAll},
}

// timeoutKills checks that a timeout ends the call, that no process of the script
// survives, and that the next command works.
func timeoutKills(script string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		r := f.run(t, env.Command{Args: []string{"sh", "-c", script}, Timeout: time.Second, MaxOutput: 1000})
		if !r.TimedOut || r.ExitCode != 137 {
			t.Errorf("timed out %v, exit %d, output %q", r.TimedOut, r.ExitCode, r.Output)
		}
		if r.Wall < time.Second {
			t.Errorf("ended after %v", r.Wall)
		}
		f.waitGone(t, nap1)
		if out := f.sh(t, "echo next"); out != "next\n" {
			t.Errorf("the next command printed %q", out)
		}
	}
}

// firstThreadEnded checks that a timeout kills a process that looks dead because only its first thread has ended.
func firstThreadEnded(t *testing.T, f *fixture) {
	r := f.python(t, time.Second, `
import ctypes, os, platform, threading, time
print(os.getpid(), flush=True)
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
`)
	if !r.TimedOut {
		t.Errorf("exit %d", r.ExitCode)
	}
	if out := f.sh(t, "ls /proc/"+strings.TrimSpace(string(r.Output))+"/task 2>/dev/null; true"); out != "" {
		t.Errorf("its threads are alive: %q", out)
	}
}

func backgroundChild(t *testing.T, f *fixture) {
	r := f.run(t, env.Command{Args: []string{"sh", "-c", "(while :; do echo noise; sleep 0.02; done) & sleep " + nap1 + " & echo done"}, Timeout: patience})
	if r.TimedOut || r.ExitCode != 0 {
		t.Errorf("timed out %v, exit %d", r.TimedOut, r.ExitCode)
	}
	if running := f.processes(t, nap1); len(running) == 0 {
		t.Error("the background child died with the command")
	}
	r = f.run(t, env.Command{Args: []string{"sleep", "20"}, Timeout: 100 * time.Millisecond})
	if running := f.processes(t, nap1); !r.TimedOut || len(running) == 0 {
		t.Error("another command's timeout killed it")
	}
}

func zombies(t *testing.T, f *fixture) {
	f.sh(t, `for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.01 &) ; done; sleep 0.1`)
	const count = `n=0; for p in /proc/[0-9]*/stat; do case "$(cat $p 2>/dev/null)" in *"(sleep) Z"*) n=$((n+1));; esac; done; echo $n`
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if f.sh(t, count) == "0\n" {
			return
		}
	}
	t.Error("zombies of orphans remain")
}

func closeEndsAll(t *testing.T, f *fixture) {
	if _, err := f.Open(t.Context(), env.TerminalSpec{Args: []string{"sleep", nap1}}); err != nil {
		t.Fatal(err)
	}
	f.sh(t, "setsid sleep "+nap1+" >/dev/null 2>&1 &")
	alive := func() []string {
		if f.suite.Remote {
			return nil
		}
		return Sleepers(t, nap1)
	}
	for end := time.Now().Add(patience); !f.suite.Remote && len(alive()) != 2; {
		if time.Now().After(end) {
			t.Fatalf("before closing: %q", alive())
		}
	}
	for range 2 {
		if err := f.Sandbox.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(patience); len(alive()) > 0; {
		if time.Now().After(end) {
			t.Fatalf("alive after closing: %q", alive())
		}
	}
	_, err := f.Run(t.Context(), env.Command{Args: []string{"true"}})
	if err == nil {
		t.Error("a closed sandbox ran a command")
	}
}
