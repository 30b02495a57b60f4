package drivers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// asAnother runs one test of this binary in another process: as a user who is
// nobody, or under a program that changes what it may do. Its output comes back.
func asAnother(t *testing.T, test string, uid uint32, environ []string, under ...string) (string, error) {
	t.Helper()
	// The binary lies where only its maker may go.
	dir, err := os.MkdirTemp("", "unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	raw, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "drivers.test")
	err = errors.Join(os.WriteFile(binary, raw, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o777),
		os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "tmp"), 0o777))
	if err != nil {
		t.Fatal(err)
	}
	args := append(under, binary, "-test.run="+test, "-test.v")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/tmp", "TMPDIR=" + dir + "/tmp"}, environ...)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Without root bubblewrap does all the same; limits and isolation hold for a user
// without any right.
func TestBubblewrapWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		return // every test of this run is that test
	}
	out, err := asAnother(t, "^(TestStartWays|TestMounts|TestBubblewrap)$/"+
		"(output_and|cancelling|timeout|close|no_|host_is|read-only|fork_bomb|memory|full_disk|bytes_of|files_of|open_files|threads|keys|removal)",
		64_321, nil)
	if err != nil || !strings.Contains(out, "--- PASS: TestBubblewrap/files_of_every_writable_place") || !strings.Contains(out, "--- PASS: TestMounts") {
		t.Errorf("%v: %s", err, out)
	}
}

// Where the kernel refuses user namespaces, a user is told what to change and
// root gets sandboxes without them, which the key says.
func TestBubblewrapWithoutUserNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		return // only root can forbid them
	}
	// The limit counts for a user namespace and all below it, here one of the test.
	forbid := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}
	out, err := asAnother(t, "^TestStartedInAnother$", 0, []string{"TRACESMITH_TEST_ANOTHER=forbidden"}, forbid...)
	if err != nil || !strings.Contains(out, "--- PASS: TestStartedInAnother") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStartedInAnother is what TestBubblewrapWithoutUserNamespaces runs.
func TestStartedInAnother(t *testing.T) {
	if os.Getenv("TRACESMITH_TEST_ANOTHER") != "forbidden" {
		return // in this process nothing is forbidden
	}
	_, err := build(t, "bubblewrap", nil).Start(t.Context(), env.SandboxSpec{})
	if err == nil {
		t.Fatal("a sandbox started although nothing can make one")
	}
	for _, want := range []string{"user.max_user_namespaces", "kernel.unprivileged_userns_clone", "--sandbox docker"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no word of %s", err, want)
		}
	}
}
