package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestLocal(t *testing.T) {
	envtest.Run(t, envtest.Suite{Driver: envtest.Driver(t, "local")})
}

// Programs see nothing of the host's environment, and the task's variables win over the driver's.
func TestLocalHidesTheHostsEnvironment(t *testing.T) {
	t.Setenv("TRACESMITH_TEST_SECRET", "s3cret")
	t.Setenv("TZ", "Asia/Tokyo")
	s := envtest.Sandbox(t, "local", env.SandboxSpec{Env: []string{"LANG=C", "MORE=1"}})
	if got := envtest.Output(t, s, "sh", "-c", "echo $TRACESMITH_TEST_SECRET,$TZ,$LANG,$MORE; echo err >&2; echo out"); got != ",UTC,C,1\nerr\nout\n" {
		t.Errorf("%q", got)
	}
	if got := envtest.Output(t, s, "pwd"); !strings.HasPrefix(got, filepath.Join(os.TempDir(), "tracesmith-local-")) {
		t.Errorf("the working directory is %q", got)
	}
}

// Listing files starts no process in the sandbox or on the host.
func TestListingFilesStartsNoProcess(t *testing.T) {
	calls := t.TempDir()
	for _, name := range []string{"apt", "apt-get", "tree", "ls", "find", "sudo"} {
		if err := os.WriteFile(filepath.Join(calls, name), []byte("#!/bin/sh\ntouch "+calls+"/called\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", calls+":"+os.Getenv("PATH"))
	s := envtest.Sandbox(t, "local", env.SandboxSpec{Env: []string{"PATH=" + calls}})
	if err := s.WriteFile(t.Context(), "d/f", nil, 0); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Walk(t.Context(), env.WalkSpec{Dir: ".", Depth: 3})
	if err != nil || len(seen.Entries) != 2 {
		t.Errorf("saw %+v, %v", seen, err)
	}
	if _, err := os.Stat(filepath.Join(calls, "called")); err == nil {
		t.Error("a program of the host was run")
	}
}

// A sandbox leaves nothing behind, even if its programs changed the permissions of its directories.
func TestLocalLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := envtest.Driver(t, "local").Start(t.Context(), env.SandboxSpec{})
	if err != nil {
		t.Fatal(err)
	}
	envtest.Output(t, s, "sh", "-c", "mkdir -p deep/er ~/x; touch deep/er/f $TMPDIR/f; chmod 000 deep/er; chmod 500 deep")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Reap removes the directories of processes that have ended, and no others. It also kills orphans of other tests, so
// the test only checks that the count is large enough.
func TestReapLocal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwnerOfADirectory$")
	cmd.Env = append(os.Environ(), "TRACESMITH_TEST_OWNER=1")
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
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(dir, os.TempDir()) {
		t.Fatalf("%q, %v", line, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	reap := func(want int) {
		t.Helper()
		d := envtest.Driver(t, "local")
		left, err := d.Leftovers(t.Context())
		n := 0
		for _, l := range left {
			if l.Kind == "directory" {
				n++
			}
		}
		if n != want || err != nil {
			t.Errorf("%d directories are left over, %v; want %d", n, err, want)
		}
		if n, err := env.RemoveLeftovers(t.Context(), d); n < want || err != nil {
			t.Errorf("reaped %d, %v; want %d at least", n, err, want)
		}
	}
	reap(0)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, lines)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	reap(1)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// TestOwnerOfADirectory is the process that TestReapLocal starts.
func TestOwnerOfADirectory(t *testing.T) {
	if os.Getenv("TRACESMITH_TEST_OWNER") == "" {
		return // not started by TestReapLocal
	}
	dir, err := drivers.MakeScratch("local")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(dir)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
