package drivers_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/kubetest"
)

// TestEachDriverHostDies kills a process that owns sandboxes and checks that their programs end and that Reap removes
// the rest. A second process of this test binary is the owner.
func TestEachDriverHostDies(t *testing.T) {
	kinds := append(kinds(t), "kubernetes")
	t.Setenv("KUBECONFIG", kubetest.Start(t).Kubeconfig())
	t.Setenv("TMPDIR", t.TempDir()) // in the shared one, a concurrent test run would remove the leftovers
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwnerOfSandboxes$", "-test.v")
	cmd.Env = append(os.Environ(), "TRACESMITH_TEST_OWNER="+strings.Join(kinds, ","), "TRACESMITH_TEST_NAP="+envtest.Nap(0))
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
	for end := time.Now().Add(60 * time.Second); len(envtest.Sleepers(t, envtest.Nap(0))) != len(kinds); {
		if time.Now().After(end) {
			t.Fatalf("programs that run: %q", envtest.Sleepers(t, envtest.Nap(0)))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // returns "signal: killed"
	for end := time.Now().Add(60 * time.Second); len(envtest.Sleepers(t, envtest.Nap(0))) > 0; {
		if time.Now().After(end) {
			t.Fatalf("programs that still run: %q", envtest.Sleepers(t, envtest.Nap(0)))
		}
	}
	for _, kind := range kinds {
		d := envtest.Driver(t, kind)
		alive := envtest.Start(t, d, env.SandboxSpec{Label: t.Name() + kind})
		n, err := env.RemoveLeftovers(t.Context(), d)
		if err != nil || kind != "bubblewrap" && n == 0 {
			t.Errorf("%s: reaped %d, %v", kind, n, err)
		}
		for end := time.Now().Add(60 * time.Second); ; { // while other test runs end, their orphans also count
			n, err := env.RemoveLeftovers(t.Context(), d)
			if n == 0 && err == nil {
				break
			}
			if err != nil || time.Now().After(end) {
				t.Errorf("%s: reaped %d more, %v", kind, n, err)
				break
			}
		}
		if got := envtest.Output(t, alive, "echo", "alive"); got != "alive\n" {
			t.Errorf("%s: the sandbox of a living process: %q", kind, got)
		}
	}
}

// TestOwnerOfSandboxes is the process that TestEachDriverHostDies kills.
func TestOwnerOfSandboxes(t *testing.T) {
	owned := os.Getenv("TRACESMITH_TEST_OWNER")
	if owned == "" {
		return // not started by TestEachDriverHostDies
	}
	for kind := range strings.SplitSeq(owned, ",") {
		s, err := envtest.Driver(t, kind).Start(t.Context(), env.SandboxSpec{Label: "orphan"})
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
