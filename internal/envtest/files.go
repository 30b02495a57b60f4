package envtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
)

var fileChecks = []check{
	{name: "write and read", fn: writeAndRead},
	{name: "modes", fn: modes},
	{name: "stat and symlinks", fn: statAndSymlinks},
	{name: "not regular files", fn: notFiles},
	{name: "writing stays in the workspace", fn: writingStaysInside},
}

func writeAndRead(t *testing.T, f *fixture) {
	big := bytes.Repeat([]byte{0, 255, '\r', '\n', 'x'}, 600_000) // 3 MB
	for name, data := range map[string][]byte{"a/b/c.bin": big, "empty": {}, "näme \xff\n": []byte("odd")} {
		if err := f.WriteFile(t.Context(), name, data, 0); err != nil {
			t.Fatal(err)
		}
		got, total, err := f.ReadFile(t.Context(), name, int64(len(data)+1))
		if err != nil || !bytes.Equal(got, data) || total != int64(len(data)) {
			t.Errorf("%q: %d bytes of %d, total %d, %v", name, len(got), len(data), total, err)
		}
	}
	got, total, err := f.ReadFile(t.Context(), "a/b/c.bin", 7)
	if err != nil || !bytes.Equal(got, big[:7]) || total != int64(len(big)) {
		t.Errorf("first 7 bytes: %q, total %d, %v", got, total, err)
	}
	if got, _, err = f.ReadFile(t.Context(), "a/b/c.bin", 0); err != nil || len(got) != len(big) {
		t.Errorf("limit 0 read %d bytes, %v", len(got), err)
	}
	if err := f.WriteFile(t.Context(), "a/b/c.bin", []byte("short"), 0); err != nil {
		t.Error(err)
	}
	if out := f.sh(t, "cat a/b/c.bin; ls -A a/b"); out != "shortc.bin\n" {
		t.Errorf("after replacing: %q", out)
	}
	_, _, err = f.ReadFile(t.Context(), "missing", 10)
	if !errors.Is(err, env.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func modes(t *testing.T, f *fixture) {
	for _, c := range []struct {
		mode uint32
		want string
	}{{0, "644"}, {0o755, "755"}, {0, "755"}, {0o400, "400"}, {0, "400"}} {
		if err := f.WriteFile(t.Context(), "script", []byte("#!/bin/sh\n"), c.mode); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(f.sh(t, "stat -c %a script")); got != c.want {
			t.Errorf("mode %o gave %s, want %s", c.mode, got, c.want)
		}
	}
}

func statAndSymlinks(t *testing.T, f *fixture) {
	f.sh(t, "mkdir d; echo hello > d/file; chmod 640 d/file; ln -s d/file link; ln -s d/new dangling; ln -s d deep")
	real := func(name string) string {
		fi, err := f.Stat(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Real
	}
	work := path.Dir(real("d"))
	for name, want := range map[string]env.FileInfo{
		"d/file":   {Size: 6, Mode: 0o640, Real: work + "/d/file"},
		"d":        {IsDir: true, Mode: 0o755, Real: work + "/d"},
		"link":     {Size: 6, Mode: 0o777, Symlink: "d/file", Real: work + "/d/file"},
		"dangling": {Size: 5, Mode: 0o777, Symlink: "d/new"},
	} {
		got, err := f.Stat(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.IsDir {
			got.Size = 0 // differs between file systems
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := f.Stat(t.Context(), "d/file/x"); !errors.Is(err, env.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
	for _, name := range []string{"link", "dangling"} {
		if err := f.WriteFile(t.Context(), name, []byte("through"), 0); err != nil {
			t.Error(err)
		}
	}
	if out := f.sh(t, "cat d/file d/new; readlink link dangling; stat -c %a d/file"); out != "throughthroughd/file\nd/new\n640\n" {
		t.Errorf("after writing through links: %q", out)
	}
}

func notFiles(t *testing.T, f *fixture) {
	f.sh(t, "mkdir dir; mkfifo pipe; ln -s loop loop; ln -s /proc/self/fd fds; ln -s /dev/zero zero")
	// The guest keeps its connection to the host at descriptors from 64 on.
	for _, name := range []string{"dir", "pipe", "loop", "zero", "fds/64", "fds/65", "/proc/self/fd/65"} {
		if data, _, err := f.ReadFile(t.Context(), name, 10); err == nil {
			t.Errorf("reading %s gave %q", name, data)
		}
	}
	if err := f.WriteFile(t.Context(), "dir", []byte("x"), 0); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if out := f.sh(t, "echo still alive"); out != "still alive\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// WriteFile refuses links that lead out of the workspace, even if a link replaces a
// directory while files are written.
func writingStaysInside(t *testing.T, f *fixture) {
	outside := fmt.Sprintf("/tmp/away-%d", os.Getpid()) // parallel runs use other names
	f.sh(t, "mkdir "+outside+"; ln -s "+outside+" dir; ln -s "+outside+"/file file; ln -s ../../../.."+outside+"/up up; mkdir deep; ln -s ../dir deep/er; ln -s $PWD/new abs")
	for _, name := range []string{"dir/file", "dir/sub/file", "file", "up", "deep/er/file", "deep/../file"} {
		if err := f.WriteFile(t.Context(), name, []byte("x"), 0); !errors.Is(err, env.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.WriteFile(t.Context(), "abs", []byte("inside"), 0); err != nil {
		t.Errorf("an absolute link within the workspace: %v", err)
	}
	if out := f.sh(t, "ls -A "+outside+"; cat new; rm -r "+outside); out != "inside" {
		t.Errorf("left %q", out)
	}
	f.sh(t, "mkdir "+outside+" a; touch "+outside+"/x; target="+outside+`
(while [ ! -e stop ]; do mv -T a b; ln -s $target a; rm a; mv -T b a; echo >>rounds; done) >/dev/null 2>&1 &`)
	f.sh(t, "while ! test -s rounds; do sleep 0.01; done")
	for range 300 {
		_ = f.WriteFile(t.Context(), "a/x", []byte("x"), 0)
	}
	if out := f.sh(t, "touch stop; test -s rounds && ls -A "+outside+"; cat "+outside+"/x; rm -r "+outside); out != "x\n" {
		t.Errorf("written through a link: %q", out)
	}
}
