package envtest

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
)

// Nap returns a duration, in seconds, for the command sleep. No other test run uses it. n is a digit that differs
// between the tests of a package.
func Nap(n int) string { return fmt.Sprintf("47.1%d%d", n, os.Getpid()) }

// Sleepers lists the processes on this host that run "sleep NAP".
func Sleepers(t *testing.T, nap string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // the process has ended
		}
		if args := strings.Split(string(raw), "\x00"); len(args) > 1 && args[0] == "sleep" && args[1] == nap {
			out = append(out, strings.Join(args, " "))
		}
	}
	return out
}

// watchThreads counts, from the host, the threads of a sandbox until done is called.
// done returns the maximum, or 0 if they are not visible from the host.
func watchThreads(t *testing.T, f *fixture) (done func() int) {
	t.Helper()
	namespace := strings.TrimSpace(f.sh(t, "readlink /proc/self/ns/pid"))
	stop, peak := make(chan struct{}), make(chan int)
	go func() {
		maximum := 0
		others := map[string]bool{}
		for {
			n := 0
			names, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range names {
				if others[dir] {
					continue
				}
				if ns, err := os.Readlink(dir + "/ns/pid"); err == nil && ns != namespace {
					others[dir] = true
				} else if threads, err := os.ReadDir(dir + "/task"); err == nil && ns == namespace {
					n += len(threads)
				}
			}
			maximum = max(maximum, n)
			select {
			case <-stop:
				peak <- maximum
				return
			default:
			}
		}
	}()
	return func() int {
		close(stop)
		return <-peak
	}
}

// Children returns the pids of a process's children.
func Children(t *testing.T, pid int) []int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	var out []int
	for field := range strings.FieldsSeq(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, child)
	}
	return out
}

// RunTestAs runs one test of this test binary in another process and returns its output. The process runs as user uid
// (0 means the current user), with environ, PATH, HOME and TMPDIR as its environment. The program under starts it and
// changes its privileges.
func RunTestAs(t *testing.T, test string, uid uint32, environ []string, under ...string) (string, error) {
	t.Helper()
	// Another user cannot access the directory of the binary.
	dir, err := os.MkdirTemp("", "unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	raw, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "another.test")
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
