package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestBubblewrap(t *testing.T) {
	envtest.Run(t, envtest.Suite{Driver: envtest.Driver(t, "bubblewrap"), Isolated: true, Remove: killGuest})
}

// If the guest is killed from outside, the sandbox has died. The agent is not the cause, because its programs cannot
// kill the first process.
func TestKilledGuestIsNotTheAgentsFault(t *testing.T) {
	for _, running := range []bool{false, true} {
		label := fmt.Sprintf("to be killed %d %v", os.Getpid(), running)
		s, err := envtest.Driver(t, "bubblewrap").Start(t.Context(), env.SandboxSpec{Label: label})
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
		if died == nil || died.CausedByCommand {
			t.Errorf("running %v: %+v", running, died)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// killGuest kills the guest of the sandbox with a label, and its bwrap.
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
		// The guest is a child of the bwrap that has the label on its command line.
		for _, inner := range envtest.Children(t, pid) {
			_ = syscall.Kill(inner, syscall.SIGKILL)
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

func TestMounts(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("cached"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := envtest.Driver(t, "bubblewrap").Start(t.Context(), env.SandboxSpec{
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
		_, err := envtest.Driver(t, "bubblewrap").Start(t.Context(), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
	t.Setenv("PATH", "/no/such")
	_, err := envtest.Driver(t, "bubblewrap").Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "apt install bubblewrap") {
		t.Errorf("no bwrap: %v", err)
	}
}
