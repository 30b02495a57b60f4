package drivers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tracesmith/tracesmith/env"
)

// testedKinds are the drivers of a test; docker joins under its switch.
func testedKinds() []string { return benchKinds() }

// The environment of programs is fixed and the same in every kind of sandbox.
func TestD2CommonEnvironment(t *testing.T) {
	for _, kind := range testedKinds() {
		s := mustStart(t, build(t, kind, nil), env.SandboxSpec{Label: t.Name() + kind})
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

// The peer's local terminal hands the host's whole environment to programs; ours
// hands out none of it, and configured values win over its own.
func TestD5LocalHasAnEnvironmentOfItsOwn(t *testing.T) {
	t.Setenv("TRACESMITH_TEST_SECRET", "s3cret")
	t.Setenv("TZ", "Asia/Tokyo")
	s := mustStart(t, build(t, "local", nil), env.SandboxSpec{Env: []string{"LANG=C", "MORE=1"}})
	if got := says(t, s, "sh", "-c", "echo $TRACESMITH_TEST_SECRET,$TZ,$LANG,$MORE; echo err >&2; echo out"); got != ",UTC,C,1\nerr\nout\n" {
		t.Errorf("%q", got)
	}
	if got := says(t, s, "pwd"); !strings.HasPrefix(got, filepath.Join(os.TempDir(), "tracesmith-local-")) {
		t.Errorf("it works in %q", got)
	}
}

// A host variable such as an API key is in no program's environment, nor in that
// of any process a program can look at.
func TestWS3HostEnvironmentStaysOut(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "s3cret-of-this-host")
	for _, kind := range testedKinds() {
		s := mustStart(t, build(t, kind, nil), env.SandboxSpec{Label: t.Name() + kind})
		got := says(t, s, "sh", "-c", "env; cat /proc/self/environ /proc/1/environ 2>/dev/null; exit 0")
		if kind == "local" { // which sees the host's processes, this test among them
			got = says(t, s, "sh", "-c", "env; cat /proc/self/environ")
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// Image, limits, labels, environment, user and places come from the settings.
func TestD7DockerSettings(t *testing.T) {
	cli := needDocker(t)
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("shown\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := build(t, "docker", map[string]any{
		"image": small(t, cli), "name_prefix": "mine-", "labels": map[string]any{"team": "a"}, "env": map[string]any{"FROM_SETTINGS": "1"},
		"user": "1234:4321", "tmpfs": map[string]any{"/tmp": 1 << 20, "/var/spool": 2 << 20}, "runtime": "runc", "platform": "linux/amd64",
		"mounts": []any{map[string]any{"host": host, "path": "/opt/shown"}},
	})
	s := mustStart(t, d, env.SandboxSpec{Limits: env.Limits{MemoryBytes: 128 << 20, DiskBytes: 32 << 20, Processes: 40, CPUs: 0.5}})
	got := says(t, s, "sh", "-c", `id -u; id -g; echo $FROM_SETTINGS; cat /opt/shown/f; touch /opt/shown/x 2>/dev/null || echo refused
touch /var/spool/x && echo wrote; head -c 3000000 /dev/zero >/tmp/big 2>/dev/null || echo full
cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us`)
	if want := "1234\n4321\n1\nshown\nrefused\nwrote\nfull\n369098752\n146\n50000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c := containerOf(t, cli, t.Name())
	if !strings.HasPrefix(c.Name, "/mine-") || c.Config.Labels["team"] != "a" || c.HostConfig.Runtime != "runc" || c.HostConfig.MemorySwap != c.HostConfig.Memory {
		t.Errorf("name %s, labels %v, runtime %s, swap %d", c.Name, c.Config.Labels, c.HostConfig.Runtime, c.HostConfig.MemorySwap)
	}

	// Below zero lifts a limit, which the key says.
	s = mustStart(t, d, env.SandboxSpec{Label: t.Name() + " unlimited", Limits: env.Limits{MemoryBytes: -1, DiskBytes: -1, Processes: -1, CPUs: -1, CPUTime: -1, OpenFiles: -1}})
	h := containerOf(t, cli, t.Name()+" unlimited").HostConfig
	if h.Memory != 0 || h.NanoCPUs != 0 || h.PidsLimit != nil && *h.PidsLimit > 0 || strings.Contains(h.Tmpfs["/workspace"], "size=") {
		t.Errorf("%+v, %v", h.Resources, h.Tmpfs)
	}
	if u := s.Key().Unenforced; !slices.Equal(u, []string{"cpu_time", "cpus", "disk", "inodes", "memory", "open_files", "processes"}) {
		t.Errorf("recorded as lifted: %v", u)
	}
}

// A container is made when it is needed, is labelled with whose it is, and is
// gone with the sandbox.
func TestD8ContainersAreLabelled(t *testing.T) {
	cli := needDocker(t)
	d := build(t, "docker", nil)
	s, err := d.Start(t.Context(), env.SandboxSpec{Label: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, cli, t.Name())
	if o, ok := parseOwner(c.Config.Labels[dockerOwner]); !ok || o != self() || c.Config.Labels[dockerMark] == "" {
		t.Errorf("labels %v", c.Config.Labels)
	}
	if n, err := d.Reap(t.Context()); err != nil {
		t.Errorf("reaping %d: %v", n, err)
	}
	if got := says(t, s, "echo", "still here"); got != "still here\n" { // its owner lives
		t.Errorf("%q", got)
	}
	other := mustStart(t, d, env.SandboxSpec{Label: t.Name() + " 2"})
	if a, b := c.Name, containerOf(t, cli, t.Name()+" 2").Name; a == b || !strings.HasPrefix(a, "/tracesmith-") {
		t.Errorf("names %s and %s", a, b)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	left, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	for _, l := range left {
		if l.ID == c.ID {
			t.Error("the container stayed")
		}
	}
	if err != nil || says(t, other, "echo", "on") != "on\n" {
		t.Errorf("the other sandbox: %v", err)
	}
}

// What stays running in the background holds no command up, however its output
// is connected (the peer waits where it is inherited), and a program's own exit
// code 124 is no time-out.
func TestD9CommandsOfAContainer(t *testing.T) {
	needDocker(t)
	s := mustStart(t, build(t, "docker", nil), env.SandboxSpec{})
	for _, script := range []string{"(nohup sleep 50.1 >/dev/null 2>&1 &)", "nohup sleep 50.1 2>/dev/null &"} {
		r, err := s.Run(t.Context(), env.Command{Args: []string{"bash", "-c", script + "\necho on; exit 124"}, Timeout: 40 * time.Second})
		if err != nil || r.TimedOut || r.ExitCode != 124 || string(r.Output) != "on\n" {
			t.Errorf("%s: %+v, %v", script, r, err)
		}
	}
	// The shell ends before its background program has begun, so both are awaited.
	both := "until [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx '50[.]1') = 2 ]; do :; done"
	if r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", both}, Timeout: 20 * time.Second}); err != nil || r.ExitCode != 0 || r.TimedOut {
		t.Errorf("background programs: %+v, %v", r, err)
	}
	r, err := s.Run(t.Context(), env.Command{Args: []string{"bash", "-c", "trap '' TERM; echo begun; sleep 50.2 & wait; sleep 50.2"}, Timeout: time.Second})
	if err != nil || !r.TimedOut || string(r.Output) != "begun\n" {
		t.Errorf("what ignores TERM: %+v, %v", r, err)
	}
	if got := says(t, s, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx '50[.]2'; exit 0"); got != "0\n" {
		t.Errorf("left of it: %q", got)
	}
}

// A driver is chosen by its name; what is wrong is named, and what the caller
// handed in is as it was.
func TestD15DriverSelection(t *testing.T) {
	with := map[string]any{"image": "x", "env": map[string]any{"A": "1"}, "labels": map[string]any{"a": "b"}}
	before := map[string]any{"image": "x", "env": map[string]any{"A": "1"}, "labels": map[string]any{"a": "b"}}
	d := build(t, "docker", with)
	t.Setenv("DOCKER_HOST", "unix:///no/such/socket")
	spec := env.SandboxSpec{Env: []string{"B=2"}, Mounts: []env.Mount{}}
	_, _ = d.Start(t.Context(), spec)
	if d.(*docker).config.Env["A"] = "changed"; !reflect.DeepEqual(with, before) {
		t.Errorf("the settings became %v", with)
	}
	if !slices.Equal(env.Drivers.Kinds(), slices.Sorted(slices.Values(env.Drivers.Kinds()))) || !slices.Contains(env.Drivers.Kinds(), "docker") {
		t.Errorf("kinds %v", env.Drivers.Kinds())
	}
	for want, c := range map[string]struct {
		kind string
		with map[string]any
	}{
		"choose one of bubblewrap, docker": {"podman", nil},
		"known are image, host":            {"docker", map[string]any{"imgae": "x"}},
		"choose never or if-missing":       {"docker", map[string]any{"pull": "always"}},
		"0 is refused":                     {"docker", map[string]any{"user": "0"}},
		"names differ between images":      {"docker", map[string]any{"user": "postgres"}},
		"both be absolute":                 {"docker", map[string]any{"mounts": []any{map[string]any{"host": "relative", "path": "/x"}}}},
		"write env:NAME":                   {"docker", map[string]any{"registry_auth": "me:password"}},
		"are taken":                        {"docker", map[string]any{"labels": map[string]any{"tracesmith.owner": "x"}}},
		"os/arch":                          {"docker", map[string]any{"platform": "amd64"}},
		"at least 4096 bytes":              {"docker", map[string]any{"tmpfs": map[string]any{"tmp": 5}}},
		"name of a variable":               {"docker", map[string]any{"env": map[string]any{"A=B": "x"}}},
		"takes no settings":                {"bubblewrap", map[string]any{"image": "x"}},
	} {
		if _, err := env.Drivers.Build(c.kind, c.with, struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.with, err, want)
		}
	}
}

// Root, capabilities, a writable system and endless disks are what a peer's
// container has; ours has none of them.
func TestWS2ContainersAreConfined(t *testing.T) {
	cli := needDocker(t)
	s := mustStart(t, build(t, "docker", nil), env.SandboxSpec{Limits: env.Limits{DiskBytes: 64 << 20}})
	got := says(t, s, "sh", "-c", `id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
for p in / /usr /etc /var /opt /root; do touch $p/x 2>/dev/null && echo wrote $p; done
for p in /workspace /tmp /home/user /dev/shm; do head -c 70M /dev/zero >$p/big 2>/dev/null && echo $p has no end; rm -f $p/big; done; exit 0`)
	if want := "1000\nCapBnd:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"; sorted(got) != sorted(want) {
		t.Errorf("%q", got)
	}
	h := containerOf(t, cli, t.Name()).HostConfig
	if h.NetworkMode != "none" || h.Privileged || !h.ReadonlyRootfs || h.PidMode != "" || h.IpcMode == "host" || len(h.Binds) > 0 || h.LogConfig.Type != "none" {
		t.Errorf("%+v", h)
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Two sandboxes and the host use one port without meeting.
func TestWS10PortsDoNotCollide(t *testing.T) {
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
	for _, kind := range testedKinds() {
		if kind == "local" {
			continue // has the host's network, and says so
		}
		d := build(t, kind, nil)
		terms := map[string]env.Terminal{}
		var boxes []env.Sandbox
		for _, word := range []string{"one", "two"} {
			s := mustStart(t, d, env.SandboxSpec{Label: t.Name() + kind + word})
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
			says(t, boxes[i], "python3", "-c", strings.Replace(send, "%s", "b'"+word+"'", 1))
			if p, err := terms[word].Read(t.Context(), 30*time.Second); err != nil || string(p) != "got "+word+"\n" {
				t.Errorf("%s %s: %q, %v", kind, word, p, err)
			}
		}
	}
}

// The programs of the host do nothing at a sandbox's behest: looking around one
// starts no process at all, of the image or the host.
func TestWS4LookingAroundRunsNoProgram(t *testing.T) {
	calls := t.TempDir()
	for _, name := range []string{"apt", "apt-get", "tree", "ls", "find", "sudo"} {
		if err := os.WriteFile(filepath.Join(calls, name), []byte("#!/bin/sh\ntouch "+calls+"/called\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", calls+":"+os.Getenv("PATH"))
	s := mustStart(t, build(t, "local", nil), env.SandboxSpec{Env: []string{"PATH=" + calls}})
	if err := s.WriteFile(t.Context(), "d/f", nil, 0); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Walk(t.Context(), env.WalkSpec{Dir: ".", Depth: 3})
	if err != nil || len(seen.Entries) != 2 {
		t.Errorf("saw %+v, %v", seen, err)
	}
	if exists(filepath.Join(calls, "called")) {
		t.Error("a program of the host was run")
	}
}

// A server on the host's loopback, on an abstract name and in a file is out of
// reach; the peer's containers share the host's network.
func TestWS1HostServersAreOutOfReach(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := "tracesmith-test-" + randomName()
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
	for _, kind := range testedKinds() {
		if kind == "local" {
			continue // shares all of it, and says so
		}
		s := mustStart(t, build(t, kind, nil), env.SandboxSpec{Label: t.Name() + kind})
		if got := says(t, s, "python3", "-c", program); got != "['lo']\n" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}
