package drivers_test

import (
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// Programs have the same fixed environment in every kind of sandbox.
func TestEachDriverSetsTheSameEnvironment(t *testing.T) {
	for _, kind := range kinds(t) {
		s := envtest.Sandbox(t, kind, env.SandboxSpec{Label: t.Name() + kind})
		r, err := s.Run(t.Context(), env.Command{Args: []string{"env"}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, l := range strings.Split(strings.TrimSpace(string(r.Output)), "\n") {
			name, value, _ := strings.Cut(l, "=")
			got[name] = value
		}
		for _, differs := range []string{"PATH", "HOME", "TMPDIR"} {
			if got[differs] == "" && differs != "TMPDIR" {
				t.Errorf("%s: no %s", kind, differs)
			}
			delete(got, differs)
		}
		want := map[string]string{
			"USER": "user", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1",
			"PAGER": "cat", "GIT_PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// The meter counts all processes: those of a command, those that it leaves running, and a terminal's process that
// is killed when the sandbox closes.
func TestMeterCountsAllProcesses(t *testing.T) {
	t.Parallel()
	const used = 200 * time.Millisecond // each of the processes
	burn := fmt.Sprintf("import os, time\nwhile time.process_time() < %v: pass\nos.write(1, b'done\\n')\n", used.Seconds())
	for _, kind := range []string{"bubblewrap", "local"} {
		var meter env.Meter
		s, err := envtest.Driver(t, kind).Start(t.Context(), env.SandboxSpec{Label: t.Name() + kind, Meter: &meter})
		if err != nil {
			t.Fatal(err)
		}
		if got := envtest.Output(t, s, "python3", "-c", "import os\nif os.fork() == 0:\n    os.setsid()\n"+strings.ReplaceAll("\n"+burn, "\n", "\n    ")+"\nelse:\n    os.wait()\n"); got != "done\n" {
			t.Fatalf("%s: %q", kind, got)
		}
		term, err := s.Open(t.Context(), env.TerminalSpec{Args: []string{"python3", "-c", burn + "time.sleep(77.7)"}})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := term.Read(t.Context(), time.Minute); err != nil || string(p) != "done\n" {
			t.Fatalf("%s: %q, %v", kind, p, err)
		}
		if before := meter.Used(); before != 0 {
			t.Errorf("%s: %v before the sandbox is closed", kind, before)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := meter.Used(); got < 2*used {
			t.Errorf("%s: %v, want at least %v", kind, got, 2*used)
		}
	}
}

// A host variable such as an API key is neither in a program's environment nor in that of a process that the program
// can inspect.
func TestEachDriverHidesTheHostsEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "s3cret-of-this-host")
	for _, kind := range kinds(t) {
		s := envtest.Sandbox(t, kind, env.SandboxSpec{Label: t.Name() + kind})
		got := envtest.Output(t, s, "sh", "-c", "env; cat /proc/self/environ /proc/1/environ 2>/dev/null; exit 0")
		if kind == "local" { // its programs see the host's processes, including this test
			got = envtest.Output(t, s, "sh", "-c", "env; cat /proc/self/environ")
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// Two sandboxes and the host can use one port at the same time.
func TestEachDriverPortsDoNotCollide(t *testing.T) {
	const serve = `
import os, socket
s = socket.socket()
s.bind(("127.0.0.1", 8731))
s.listen()
os.write(1, b"bound\n")
c, _ = s.accept()
os.write(1, b"got " + c.recv(10) + b"\n")
`
	const send = `import socket; socket.create_connection(("127.0.0.1", 8731)).sendall(%s)`
	for _, kind := range kinds(t) {
		if kind == "local" {
			continue // it has the host's network, which its key records
		}
		d := envtest.Driver(t, kind)
		terms := map[string]env.Terminal{}
		var boxes []env.Sandbox
		for _, word := range []string{"one", "two"} {
			s := envtest.Start(t, d, env.SandboxSpec{Label: t.Name() + kind + word})
			term, err := s.Open(t.Context(), env.TerminalSpec{Args: []string{"python3", "-u", "-c", serve}})
			if err != nil {
				t.Fatal(err)
			}
			if p, err := term.Read(t.Context(), 30*time.Second); err != nil || string(p) != "bound\n" {
				t.Fatalf("%s %s: %q, %v", kind, word, p, err)
			}
			terms[word], boxes = term, append(boxes, s)
		}
		for i, word := range []string{"one", "two"} {
			envtest.Output(t, boxes[i], "python3", "-c", strings.Replace(send, "%s", "b'"+word+"'", 1))
			if p, err := terms[word].Read(t.Context(), 30*time.Second); err != nil || string(p) != "got "+word+"\n" {
				t.Errorf("%s %s: %q, %v", kind, word, p, err)
			}
		}
	}
}

// Programs cannot reach servers on the host's loopback, on an abstract name or in a file.
func TestEachDriverBlocksHostServers(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := "tracesmith-test-" + drivers.RandomName()
	abstract, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	file, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	program := fmt.Sprintf(`
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", %d)), (socket.AF_UNIX, "\0%s"), (socket.AF_UNIX, %q), (socket.AF_UNIX, "/var/run/docker.sock")):
    try:
        socket.socket(family).connect(address)
        print("reached", address)
    except OSError:
        pass
for family in (socket.AF_PACKET, 40):
    try:
        socket.socket(family, socket.SOCK_RAW)
        print("made", family)
    except OSError:
        pass
print([name for _, name in socket.if_nameindex()])`, tcp.Addr().(*net.TCPAddr).Port, name, file.Addr())
	for _, kind := range kinds(t) {
		if kind == "local" {
			continue // it is not isolated, which its key records
		}
		s := envtest.Sandbox(t, kind, env.SandboxSpec{Label: t.Name() + kind})
		if got := envtest.Output(t, s, "python3", "-c", program); got != "['lo']\n" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

func TestDriversAreChosenByName(t *testing.T) {
	all := []string{"bubblewrap", "docker", "kubernetes", "local"}
	if !slices.Equal(env.Drivers.Kinds(), all) {
		t.Errorf("kinds %v", env.Drivers.Kinds())
	}
	for _, kind := range all {
		if d := envtest.Driver(t, kind); d.Name() != kind {
			t.Errorf("the driver %s has the name %s", kind, d.Name())
		}
	}
	for want, c := range map[string]struct {
		kind string
		with map[string]any
	}{
		"choose one of bubblewrap, docker": {"podman", nil},
		"takes no settings":                {"bubblewrap", map[string]any{"image": "x"}},
	} {
		if _, err := env.Drivers.Build(c.kind, c.with, struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.with, err, want)
		}
	}
}
