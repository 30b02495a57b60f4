package envtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

var isolationChecks = []check{
	{name: "guest survives signals", fn: guestSurvives},
	{name: "programs start while others are stopped", fn: startsWhileStopped},
	{name: "guest cannot be read or traced", fn: guestUntouchable},
	{name: "guest has priority over programs", fn: guestPriority},
	{name: "output is write-only", fn: outputWriteOnly},
	{name: "no privileges", fn: noPrivileges},
	{name: "no network", fn: noNetwork},
	{name: "host is hidden", fn: hostHidden},
	{name: "read-only outside the workspace", fn: readOnly},
}

var limitChecks = []check{
	{name: "fork bomb", fn: forkBomb, adjust: func(s *env.SandboxSpec) { s.Limits.Processes = 60 }},
	{name: "fork bomb in a terminal", fn: terminalBomb, adjust: func(s *env.SandboxSpec) { s.Limits.Processes = 60 }},
	{name: "memory hog", fn: memoryHog, adjust: func(s *env.SandboxSpec) { s.Limits.MemoryBytes = 200 << 20 }},
	{name: "memory hog in a terminal", fn: memoryHogTerminal, adjust: func(s *env.SandboxSpec) { s.Limits.MemoryBytes = 200 << 20 }},
	{name: "full disk", fn: fullDisk, adjust: func(s *env.SandboxSpec) { s.Limits.DiskBytes = 64 << 20 }},
}

func guestSurvives(t *testing.T, f *fixture) {
	f.run(t, env.Command{Args: []string{"sh", "-c", "for s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 19 20 23 31 64; do kill -$s 1 2>/dev/null; done; kill -9 -1"}})
	if out := f.sh(t, "echo alive"); out != "alive\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// startsWhileStopped checks that a program that is stopped or killed between the guest's
// fork and its own first instruction does not block the guest.
func startsWhileStopped(t *testing.T, f *fixture) {
	for _, signal := range []string{"SIGSTOP", "SIGTSTP", "SIGKILL"} {
		f.run(t, env.Command{Args: []string{"python3", "-c", `
import os, signal, sys, time
parent = os.getpid()
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() == parent: # until the parent has ended: if it were stopped, the command would run until its timeout
    time.sleep(0.01)
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        os.kill(-1, getattr(signal, sys.argv[1]))
    except OSError:
        pass
`, signal}, Timeout: patience})
		const ask = `for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null < $p/cmdline; done; echo asked`
		for end := time.Now().Add(patience); ; {
			r := f.run(t, env.Command{Args: []string{"sh", "-c", ask}, Timeout: 4 * time.Second})
			if strings.HasSuffix(string(r.Output), "asked\n") && !strings.Contains(string(r.Output), "getattr(signal") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: exit %d, timed out %v, %q", signal, r.ExitCode, r.TimedOut, r.Output)
			}
		}
		if out := f.sh(t, "echo alive"); out != "alive\n" {
			t.Errorf("after %s: %q", signal, out)
		}
	}
}

func guestUntouchable(t *testing.T, f *fixture) {
	r := f.python(t, patience, `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("ptrace", libc.ptrace(16, 1, 0, 0))
print("seize", libc.ptrace(0x4206, 1, 0, 0))
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/64", "/proc/1/fd/65"):
    try:
        os.close(os.open(path, os.O_RDWR if path.endswith("mem") else os.O_RDONLY))
        print("opened", path)
    except OSError:
        pass
try:
    print("listed", os.listdir("/proc/1/fd"))
except OSError:
    pass
print("own", sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < 1000))
`)
	out := string(r.Output)
	if !strings.HasPrefix(out, "ptrace -1\nseize -1\nown [0, 1, 2, 3]") {
		t.Errorf("programs can access the guest: %q", out)
	}
}

// outputWriteOnly checks that a program can reopen its output for writing but not for
// reading.
func outputWriteOnly(t *testing.T, f *fixture) {
	if out := f.sh(t, "cat /proc/$$/fd/1 2>/dev/null || echo refused >/dev/stdout"); out != "refused\n" {
		t.Errorf("%q", out)
	}
}

// guestPriority checks that programs run at a lower priority than the guest and cannot
// raise it, so that the guest can end programs that use all processors.
func guestPriority(t *testing.T, f *fixture) {
	r := f.python(t, patience, `
import os
own, guest = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, 1))
print("below" if own >= min(guest + 10, 19) else (own, guest))
try:
    os.setpriority(os.PRIO_PROCESS, 0, guest)
    print("raised")
except OSError:
    pass
`)
	if string(r.Output) != "below\n" {
		t.Errorf("priorities: %q", r.Output)
	}
}

func noPrivileges(t *testing.T, f *fixture) {
	out := f.sh(t, "id -u; grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '\t'")
	const none = ":0000000000000000\n"
	want := "CapInh" + none + "CapPrm" + none + "CapEff" + none + "CapBnd" + none + "CapAmb" + none + "NoNewPrivs:1\n"
	if strings.HasPrefix(out, "0\n") || !strings.HasSuffix(out, want) {
		t.Errorf("privileges: %q", out)
	}
	out = f.sh(t, "unshare -U true 2>/dev/null && echo user namespace; exit 0")
	if out != "" {
		t.Errorf("programs can create: %q", out)
	}
}

func noNetwork(t *testing.T, f *fixture) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	r := f.python(t, patience, fmt.Sprintf(`
import socket
for address in (("127.0.0.1", %d), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, timeout=3)
        print("connected", address)
    except OSError:
        pass
try:
    socket.socket(getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM)
    print("a socket to the hypervisor")
except OSError:
    pass
`, port))
	if len(r.Output) > 0 {
		t.Errorf("%q", r.Output)
	}
}

func hostHidden(t *testing.T, f *fixture) {
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("s"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.ReadFile(t.Context(), secret, 1); !errors.Is(err, env.ErrNotExist) {
		t.Errorf("a host file by path: %v", err)
	}
	f.sh(t, "ln -s "+secret+" leak; ln -s / root")
	for _, name := range []string{"leak", "root" + secret} {
		if _, _, err := f.ReadFile(t.Context(), name, 1); !errors.Is(err, env.ErrNotExist) {
			t.Errorf("a host file through %s: %v", name, err)
		}
	}
	if err := f.WriteFile(t.Context(), "leak", []byte("changed"), 0); err == nil {
		if raw, err := os.ReadFile(secret); err != nil || string(raw) != "s" {
			t.Errorf("the host file is now %q, %v", raw, err)
		}
	}
	host, err := os.Hostname()
	if err == nil && strings.TrimSpace(f.sh(t, "uname -n")) == host {
		t.Error("the host's name is visible")
	}
}

func readOnly(t *testing.T, f *fixture) {
	out := f.sh(t, "for p in / /usr /etc /dev /run /var /usr/lib; do if touch $p/x-test 2>/dev/null; then echo wrote $p; fi; done; touch /tmp/x $HOME/x x && echo good")
	if out != "good\n" {
		t.Errorf("%q", out)
	}
}

// bombs are Python programs that create processes or threads without end.
var bombs = map[string]string{
	"fork": `
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
`,
	"sessions": `
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
`,
	"runs away": `
import os
while True:
    try:
        if os.fork():
            os.fork()
            os._exit(0)
        os.setsid()
    except OSError:
        pass
`,
	"threads": `
import threading
threading.stack_size(64 << 10)
def more():
    while True:
        try:
            threading.Thread(target=more).start()
        except RuntimeError:
            pass
more()
`,
}

// forkBomb checks that a bomb is ended and never has many more processes than the limit of
// the sandbox. The limit of the kernel is higher, so that the watchdog can notice the excess,
// and includes the guest's threads.
func forkBomb(t *testing.T, f *fixture) {
	const limit = 60 + 60/4 + 96 + 10
	for name, bomb := range bombs {
		peak := watchThreads(t, f)
		r := f.python(t, 5*time.Second, bomb)
		if name != "runs away" && r.Limit != "processes" && !r.TimedOut {
			t.Errorf("%s: limit %q, timed out %v, exit %d, output %.200q", name, r.Limit, r.TimedOut, r.ExitCode, r.Output)
		}
		f.waitGone(t, "while True")
		if n := peak(); n > limit {
			t.Errorf("%s: %d processes and threads, the limit is 60", name, n)
		} else {
			t.Logf("%s: at most %d processes and threads", name, n)
		}
		if out := f.sh(t, "echo alive"); out != "alive\n" {
			t.Errorf("after %s: %q", name, out)
		}
	}
}

// terminalBomb checks that a terminal's own program is killed if it starts too many
// processes again and again.
func terminalBomb(t *testing.T, f *fixture) {
	term := open(t, f, false, "python3", "-c", `
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        pass
`)
	for end := time.Now().Add(patience); ; {
		_, err := term.Read(t.Context(), time.Second)
		if code, ended := term.Exit(); ended && code == 137 {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("the bomb still runs: %v", err)
		}
	}
	if l, ok := term.(env.LimitReporter); !ok || l.Limit() != "processes" {
		t.Error("the terminal does not report the limit")
	}
	f.waitGone(t, "os.fork")
}

func memoryHog(t *testing.T, f *fixture) {
	const hog = `
import time
hold = []
for i in range(4000):
    hold.append(bytearray(1 << 20))
    time.sleep(0.001)
`
	r := f.python(t, patience, hog)
	if r.Limit != "memory" || r.ExitCode != 137 || r.TimedOut {
		t.Errorf("limit %q, exit %d, timed out %v, output %.200q", r.Limit, r.ExitCode, r.TimedOut, r.Output)
	}
	r = f.python(t, patience, `
import os, time
for i in range(8):
    if os.fork() == 0:
        hold = bytearray(40 << 20)
        time.sleep(1000)
time.sleep(1000)
`)
	if r.Limit != "memory" {
		t.Errorf("eight small processes: limit %q, timed out %v", r.Limit, r.TimedOut)
	}
	r = f.python(t, patience, `
import os, time
hold = bytearray(100 << 20)
for i in range(4):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for i in range(4):
    os.wait()
`)
	if r.Limit != "" || r.ExitCode != 0 {
		t.Errorf("shared pages were counted twice: limit %q, exit %d", r.Limit, r.ExitCode)
	}
}

func memoryHogTerminal(t *testing.T, f *fixture) {
	term := open(t, f, true, "bash", "--norc", "--noprofile")
	write(t, term, "python3 -c 'x = bytearray(600 << 20); import time; time.sleep(60)'; echo code $?\n")
	readUntil(t, term, "code 137\n")
	l, ok := term.(env.LimitReporter)
	if !ok || l.Limit() != "memory" {
		t.Error("the terminal does not report the limit")
	}
	write(t, term, "echo alive\n")
	readUntil(t, term, "alive\n")
}

func fullDisk(t *testing.T, f *fixture) {
	r := f.run(t, env.Command{Args: []string{"sh", "-c", "head -c 200M /dev/zero > big; head -c 200M /dev/zero > /tmp/big; df -k . >/dev/null; echo done"}, Timeout: patience})
	if !strings.HasSuffix(string(r.Output), "done\n") {
		t.Errorf("%q", r.Output)
	}
	err := f.WriteFile(t.Context(), "more", make([]byte, 2<<20), 0)
	if !errors.Is(err, env.ErrNoSpace) {
		t.Errorf("writing to a full disk: %v", err)
	}
	if out := f.sh(t, "rm big /tmp/big; ls"); out != "" {
		t.Errorf("files remain: %q", out)
	}
	if err := f.WriteFile(t.Context(), "more", make([]byte, 2<<20), 0); err != nil {
		t.Errorf("after making room: %v", err)
	}
}

func limitsRecorded(t *testing.T, f *fixture) {
	k := f.Key()
	if k.Python == "" || f.suite.Isolated && k.Driver != f.suite.Driver.Name() {
		t.Errorf("key %+v", k)
	}
	for _, limit := range []string{"memory", "disk", "inodes", "processes", "cpus", "network", "cpu_time", "open_files"} {
		enforced := k.Limits[limit] != ""
		for _, u := range k.Unenforced {
			enforced = enforced || u == limit
		}
		if !enforced {
			t.Errorf("%s is neither enforced nor recorded as unenforced: %+v", limit, k)
		}
	}
}
