package drivers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/kubetest"
)

// TestHostDies: when the process that owns sandboxes is killed, nothing of them
// stays, at the latest after Reap. The test binary plays the owner.
func TestHostDies(t *testing.T) {
	kinds := append(benchKinds(), "kubernetes")
	t.Setenv("KUBECONFIG", kubetest.Start(t).Kubeconfig())
	t.Setenv("TMPDIR", t.TempDir()) // in that of all others a run beside us removes what the dead left
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwnerOfSandboxes$", "-test.v")
	cmd.Env = append(os.Environ(), "TRACESMITH_TEST_OWNER="+strings.Join(kinds, ","), "TRACESMITH_TEST_NAP="+nap(0))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "sandboxes are up") {
	}
	for end := time.Now().Add(60 * time.Second); len(sleepers(t, nap(0))) != len(kinds); {
		if time.Now().After(end) {
			t.Fatalf("programs that run: %q", sleepers(t, nap(0)))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed, as we know
	for end := time.Now().Add(60 * time.Second); len(sleepers(t, nap(0))) > 0; {
		if time.Now().After(end) {
			t.Fatalf("alive: %q", sleepers(t, nap(0)))
		}
	}
	for _, kind := range kinds {
		d := build(t, kind, nil)
		alive := mustStart(t, d, env.SandboxSpec{Label: t.Name() + kind})
		n, err := d.Reap(t.Context())
		if err != nil || kind != "bubblewrap" && n == 0 {
			t.Errorf("%s: reaped %d, %v", kind, n, err)
		}
		for end := time.Now().Add(60 * time.Second); ; { // other processes' orphans count too while they die beside us
			n, err := d.Reap(t.Context())
			if n == 0 && err == nil {
				break
			}
			if err != nil || time.Now().After(end) {
				t.Errorf("%s: reaped %d more, %v", kind, n, err)
				break
			}
		}
		if got := says(t, alive, "echo", "alive"); got != "alive\n" {
			t.Errorf("%s: the sandbox of a living process: %q", kind, got)
		}
	}
}

// TestOwnerOfSandboxes is the process that TestHostDies kills.
func TestOwnerOfSandboxes(t *testing.T) {
	kinds := os.Getenv("TRACESMITH_TEST_OWNER")
	if kinds == "" {
		return // nothing to own
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		s, err := build(t, kind, nil).Start(t.Context(), env.SandboxSpec{Label: "orphan"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "setsid sleep " + os.Getenv("TRACESMITH_TEST_NAP") + " >/dev/null 2>&1 &"}})
		if err != nil || r.ExitCode != 0 {
			t.Fatal(err, r.ExitCode, string(r.Output))
		}
	}
	t.Log("sandboxes are up")
	<-t.Context().Done()
}

// nap is how long the programs of the nth test of this run sleep, and of no other; n
// has one digit.
func nap(n int) string { return fmt.Sprintf("47.1%d%d", n, os.Getpid()) }

// sleepers are the programs of this host that sleep that long.
func sleepers(t *testing.T, nap string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if raw, err := os.ReadFile(f); err == nil && string(raw) == "sleep\x00"+nap+"\x00" {
			out = append(out, f)
		}
	}
	return out
}

// TestStartWays: each way bwrap may come by its privileges ends in a sandbox
// whose programs have none.
func TestStartWays(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	d := &bubblewrap{}
	python, err := d.pythons.find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range startWays() {
		s, err := d.start(t.Context(), bwrap, env.SandboxSpec{Workdir: "/w", Limits: env.DefaultLimits}, python, way)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "id -un; pwd; grep -cE '^Cap...:[[:space:]]0+$' /proc/self/status; touch x ~/x; mkdir /x 2>/dev/null || echo refused; kill -0 1 && echo same user"}})
		if want := "user\n/w\n5\nrefused\nsame user\n"; err != nil || string(r.Output) != want {
			t.Errorf("%+v: %q, %v", way, r.Output, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
