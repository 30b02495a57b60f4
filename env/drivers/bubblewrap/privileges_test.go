package bubblewrap

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// However bwrap gets its privileges, the programs of the sandbox have none.
func TestPrivilegeModes(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{}
	python, err := d.pythons.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range privilegeModes() {
		s, err := d.start(t.Context(), bwrap, env.SandboxSpec{Workdir: "/w", Limits: env.DefaultLimits}, python, mode)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "id -un; pwd; grep -cE '^Cap...:[[:space:]]0+$' /proc/self/status; touch x ~/x; mkdir /x 2>/dev/null || echo refused; kill -0 1 && echo same user"}})
		if want := "user\n/w\n5\nrefused\nsame user\n"; err != nil || string(r.Output) != want {
			t.Errorf("%+v: %q, %v", mode, r.Output, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The driver also works without root: limits and isolation hold for a user without privileges.
func TestBubblewrapWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		return // the other tests already run without root
	}
	out, err := envtest.RunTestAs(t, "^(TestPrivilegeModes|TestMounts|TestBubblewrap)$/"+
		"(output_and|cancelling|timeout|close|no_|host_is|read-only|fork_bomb|memory|full_disk|bytes_of|files_of|open_files|threads|keys|removal)",
		64_321, nil)
	if err != nil || !strings.Contains(out, "--- PASS: TestBubblewrap/files_of_every_writable_directory") || !strings.Contains(out, "--- PASS: TestMounts") {
		t.Errorf("%v: %s", err, out)
	}
}

// If the kernel refuses user namespaces, the error says what to change.
func TestBubblewrapWithoutUserNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		return // only root can forbid them
	}
	// The limit applies to a user namespace, here one that the test creates, and all namespaces below it.
	forbid := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}
	out, err := envtest.RunTestAs(t, "^TestStartWithUserNamespacesForbidden$", 0, []string{"TRACESMITH_TEST_ANOTHER=forbidden"}, forbid...)
	if err != nil || !strings.Contains(out, "--- PASS: TestStartWithUserNamespacesForbidden") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStartWithUserNamespacesForbidden runs in the process that TestBubblewrapWithoutUserNamespaces starts.
func TestStartWithUserNamespacesForbidden(t *testing.T) {
	if os.Getenv("TRACESMITH_TEST_ANOTHER") != "forbidden" {
		return // not started by TestBubblewrapWithoutUserNamespaces
	}
	_, err := envtest.Driver(t, "bubblewrap").Start(t.Context(), env.SandboxSpec{})
	if err == nil {
		t.Fatal("a sandbox started although user namespaces are forbidden")
	}
	for _, want := range []string{"user.max_user_namespaces", "kernel.unprivileged_userns_clone", "--sandbox docker"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}
