package drivers

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// A guest that is killed from outside is a dead sandbox, and not the agent's
// doing: its programs cannot kill the first process.
func TestGuestKilled(t *testing.T) {
	for _, running := range []bool{false, true} {
		label := fmt.Sprintf("to be killed %d %v", os.Getpid(), running)
		s, err := build(t, "bubblewrap", nil).Start(t.Context(), env.SandboxSpec{Label: label})
		if err != nil {
			t.Fatal(err)
		}
		term, err := s.Open(t.Context(), env.TerminalSpec{Args: []string{"sh", "-c", "while [ ! -e on ]; do sleep 0.01; done; echo on"}})
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		if running {
			go func() {
				_, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "touch on; sleep 55.55"}})
				result <- err
			}()
			if p, err := term.Read(t.Context(), time.Minute); err != nil || string(p) != "on\n" {
				t.Fatalf("%q, %v", p, err)
			}
		}
		killGuest(t, label)
		if !running {
			_, err := s.Run(t.Context(), env.Command{Args: []string{"true"}})
			result <- err
		}
		died, _ := errors.AsType[*env.DiedError](<-result)
		if died == nil || died.DuringCommand {
			t.Errorf("running %v: %+v", running, died)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// killGuest kills every process that carries the label, bwrap and guest.
func killGuest(t *testing.T, label string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		raw, err := os.ReadFile(line)
		if err != nil || !strings.Contains(string(raw), "\x00"+label+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			t.Fatal(err)
		}
		// The guest itself is below the bwrap that is named on the command line.
		_ = killChildren(pid)
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

func TestReapLocal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.Command("sh", "-c", "echo up; cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	o := here()
	o.pid = int64(cmd.Process.Pid)
	o.start, _ = startTime(cmd.Process.Pid)
	dir := filepath.Join(os.TempDir(), scratchPrefix+"local-1")
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, scratchOwner), []byte(o.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	reap := func(want int) {
		t.Helper()
		if n, err := build(t, "local", nil).Reap(t.Context()); n != want || err != nil {
			t.Errorf("reaped %d, %v; want %d", n, err, want)
		}
	}
	reap(0)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	reap(1)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// A local sandbox leaves nothing, whatever its programs did to its directories.
func TestLocalLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := build(t, "local", nil).Start(t.Context(), env.SandboxSpec{})
	if err != nil {
		t.Fatal(err)
	}
	says(t, s, "sh", "-c", "mkdir -p deep/er ~/x; touch deep/er/f $TMPDIR/f; chmod 000 deep/er; chmod 500 deep")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestOwner(t *testing.T) {
	me := self()
	if back, ok := parseOwner(me.String()); !ok || back != me || me.dead() {
		t.Errorf("%v came back as %v, dead %v", me, back, me.dead())
	}
	for _, c := range []struct {
		change func(*owner)
		dead   bool
	}{
		{func(o *owner) { o.start++ }, true},
		{func(o *owner) { o.boot = "another" }, true},
		{func(o *owner) { o.boot, o.host = "another", "another" }, false},
		{func(o *owner) { o.start++; o.space = "1" }, false},
	} {
		o := me
		c.change(&o)
		if o.dead() != c.dead {
			t.Errorf("%v: dead %v", o, o.dead())
		}
	}
	for _, s := range []string{"", "a.b", "a.b.c.d.e", "a.b.c.1.x"} {
		if _, ok := parseOwner(s); ok {
			t.Errorf("%q is an owner", s)
		}
	}
}

func TestPythonOfAVirtualEnvironment(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	site, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages"))
	if err != nil || len(site) != 1 {
		t.Fatal(site, err)
	}
	if err := os.WriteFile(filepath.Join(site[0], "only_here.py"), []byte("here = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"bubblewrap", "local"} {
		s, err := build(t, kind, nil).Start(t.Context(), env.SandboxSpec{Python: filepath.Join(venv, "bin/python")})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"python", "python3"} {
			r, err := s.Run(t.Context(), env.Command{Args: []string{name, "-c", "import only_here, sys; print(sys.prefix)"}})
			if err != nil || string(r.Output) != venv+"\n" {
				t.Errorf("%s %s: %q, %v", kind, name, r.Output, err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestMounts(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("cached"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := build(t, "bubblewrap", nil).Start(t.Context(), env.SandboxSpec{
		Workdir: "/root/project/src",
		Mounts:  []env.Mount{{Host: host, Path: "/opt/cache/read"}, {Host: t.TempDir(), Path: "/opt/cache/write", Write: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c",
		"pwd; cat /opt/cache/read/f; touch /opt/cache/read/x 2>/dev/null || echo ' refused'; echo y > /opt/cache/write/y && cat /opt/cache/write/y"}})
	if err != nil || string(r.Output) != "/root/project/src\ncached refused\ny\n" {
		t.Errorf("%q, %v", r.Output, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartRefusals(t *testing.T) {
	for _, c := range []struct {
		spec env.SandboxSpec
		want string
	}{
		{env.SandboxSpec{Workdir: "/usr/x"}, "/workspace"},
		{env.SandboxSpec{Workdir: "relative"}, "/workspace"},
		{env.SandboxSpec{Python: "/no/such/python"}, "--python"},
		{env.SandboxSpec{Python: "/bin/true"}, "does not work as a Python"},
		{env.SandboxSpec{Mounts: []env.Mount{{Host: "/no/such/dir", Path: "/opt/x"}}}, "/no/such/dir"},
	} {
		_, err := build(t, "bubblewrap", nil).Start(t.Context(), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
	t.Setenv("DOCKER_HOST", "unix:///no/such/socket")
	_, err := build(t, "docker", nil).Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "start the daemon") {
		t.Errorf("no daemon: %v", err)
	}
	t.Setenv("PATH", "/no/such")
	_, err = build(t, "bubblewrap", nil).Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "apt install bubblewrap") {
		t.Errorf("no bwrap: %v", err)
	}
}
