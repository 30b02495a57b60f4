package drivers_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// If a guest is stopped or killed from outside while a command runs, Run returns ErrSandboxDied, and closing the
// sandbox leaves no process behind.
func TestEachDriverGuestStoppedOrKilledFromOutside(t *testing.T) {
	for i, kind := range kinds(t) {
		for j, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%s/%v", kind, signal), func(t *testing.T) {
				t.Parallel()
				nap := envtest.Nap(2*i + j)
				label := fmt.Sprintf("%s %d", t.Name(), os.Getpid())
				s, err := envtest.Driver(t, kind).Start(t.Context(), env.SandboxSpec{Label: label})
				if err != nil {
					t.Fatal(err)
				}
				result := make(chan error, 1)
				go func() {
					script := "setsid sleep " + nap + " & sleep " + nap
					_, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", script}, Timeout: 5 * time.Second})
					result <- err
				}()
				for end := time.Now().Add(time.Minute); len(envtest.Sleepers(t, nap)) != 2; {
					if time.Now().After(end) {
						t.Fatal("the command has not started")
					}
				}
				if err := syscall.Kill(guestOf(t, kind, label), signal); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-result:
					if !errors.Is(err, env.ErrSandboxDied) {
						t.Errorf("Run = %v, want ErrSandboxDied", err)
					}
				case <-time.After(time.Minute):
					t.Error("the command still runs")
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				for end := time.Now().Add(time.Minute); len(envtest.Sleepers(t, nap)) > 0; {
					if time.Now().After(end) {
						t.Fatalf("processes that still run: %q", envtest.Sleepers(t, nap))
					}
				}
			})
		}
	}
}

// guestOf returns the host pid of the guest of the sandbox with a label.
func guestOf(t *testing.T, kind, label string) int {
	t.Helper()
	if kind == "docker" {
		return containerGuest(t, label)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		raw, err := os.ReadFile(line)
		if err != nil || !strings.Contains(string(raw), "\x00"+guest.ServeArg+"\x00") || !strings.Contains(string(raw), "\x00"+label+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			t.Fatal(err)
		}
		if kind == "local" {
			return pid
		}
		inner := envtest.Children(t, pid) // pid is bwrap, whose command line names the guest
		if len(inner) != 1 {
			t.Fatalf("bwrap has the children %v", inner)
		}
		return inner[0]
	}
	t.Fatalf("no guest serves %q", label)
	return 0
}

// containerGuest returns the host pid of the first process in the container with a label.
func containerGuest(t *testing.T, label string) int {
	t.Helper()
	id, err := exec.Command("docker", "ps", "--quiet", "--filter", "label=tracesmith.label="+label).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := exec.Command("docker", "inspect", "--format", "{{.State.Pid}}", strings.TrimSpace(string(id))).Output()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
