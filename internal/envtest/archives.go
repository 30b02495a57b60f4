package envtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
)

var archiveChecks = []check{
	{name: "archive round trip", fn: archiveRoundTrip},
	{name: "archive over existing files", fn: archiveOverFiles},
	{name: "hostile archives", fn: hostileArchives},
	{name: "archive of odd files", fn: oddFiles},
}

// entry is one member of an archive.
type entry struct {
	Name, Link, Body string
	Mode             int64
	Type             byte
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, e := range entries {
		h := &tar.Header{Name: e.Name, Linkname: e.Link, Mode: e.Mode, Typeflag: e.Type, Size: int64(len(e.Body)),
			ModTime: time.Unix(int64(1e9+i), 0), Uid: 77}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func (f *fixture) tarOut(t *testing.T, dir string) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := f.TarOut(t.Context(), dir, &buf); err != nil {
		t.Fatalf("archiving %s: %v", dir, err)
	}
	return buf.Bytes()
}

func readArchive(t *testing.T, raw []byte) []entry {
	t.Helper()
	var out []entry
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d %q, time %v", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		out = append(out, entry{h.Name, h.Linkname, string(body), h.Mode, h.Typeflag})
	}
}

func archiveRoundTrip(t *testing.T, f *fixture) {
	want := []entry{
		{Name: ".hidden", Mode: 0o600, Type: tar.TypeReg, Body: "h"},
		{Name: "Z", Mode: 0o644, Type: tar.TypeReg},
		{Name: "bin/", Mode: 0o755, Type: tar.TypeDir},
		{Name: "bin/run", Mode: 0o755, Type: tar.TypeReg, Body: strings.Repeat("0123456789", 300_000)},
		{Name: "locked/", Mode: 0o555, Type: tar.TypeDir},
		{Name: "locked/secret", Mode: 0o400, Type: tar.TypeReg, Body: "s"},
		{Name: "to-bin", Link: "bin/run", Mode: 0o777, Type: tar.TypeSymlink},
		{Name: "to-nowhere", Link: "/etc/nowhere", Mode: 0o777, Type: tar.TypeSymlink},
		{Name: "ümlaut " + strings.Repeat("x", 150), Mode: 0o644, Type: tar.TypeReg, Body: "\x00\xff"},
	}
	if err := f.TarIn(t.Context(), "tree", bytes.NewReader(archive(t, want...))); err != nil {
		t.Fatal(err)
	}
	first := f.tarOut(t, "tree")
	if diff := cmp.Diff(want, readArchive(t, first)); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
	f.sh(t, "touch tree/Z tree/bin")
	if !bytes.Equal(first, f.tarOut(t, "tree")) {
		t.Error("the same tree gave a different archive")
	}
	f.sh(t, "chmod -R u+rwX tree")
}

func archiveOverFiles(t *testing.T, f *fixture) {
	f.sh(t, "mkdir tree; echo old > tree/a; ln -s /etc/passwd tree/b; echo keep > tree/c")
	err := f.TarIn(t.Context(), "tree", bytes.NewReader(archive(t,
		entry{Name: "./a", Mode: 0o644, Type: tar.TypeReg, Body: "new"},
		entry{Name: "b", Mode: 0o644, Type: tar.TypeReg, Body: "file"},
		entry{Name: "a", Mode: 0o644, Type: tar.TypeReg, Body: "newer"})))
	if err != nil {
		t.Fatal(err)
	}
	if out := f.sh(t, "cd tree; cat a b c; test -L b || echo file"); out != "newerfilekeep\nfile\n" {
		t.Errorf("got %q", out)
	}
}

func hostileArchives(t *testing.T, f *fixture) {
	f.sh(t, "mkdir outside tree; ln -s ../outside tree/preset")
	file := func(name string) entry { return entry{Name: name, Mode: 0o644, Type: tar.TypeReg, Body: "evil"} }
	for name, bad := range map[string][]entry{
		"parent":           {file("../outside/x")},
		"inner parent":     {file("a/../../outside/x")},
		"absolute":         {file("/tmp/evil-x")},
		"through link":     {{Name: "l", Link: "../outside", Type: tar.TypeSymlink}, file("l/x")},
		"through absolute": {{Name: "m", Link: "/tmp", Type: tar.TypeSymlink}, file("m/evil-x")},
		"through preset":   {file("preset/x")},
		"hard link":        {{Name: "h", Link: "/etc/passwd", Type: tar.TypeLink}},
		"device":           {{Name: "dev", Type: tar.TypeChar}},
		"pipe":             {{Name: "fifo", Type: tar.TypeFifo}},
	} {
		if err := f.TarIn(t.Context(), "tree", bytes.NewReader(archive(t, bad...))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := f.TarIn(t.Context(), "tree", strings.NewReader(strings.Repeat("not a tar ", 1000))); err == nil {
		t.Error("garbage was accepted")
	}
	if out := f.sh(t, "ls outside; ls /tmp | grep evil-x; true"); out != "" {
		t.Errorf("written outside: %q", out)
	}
}

func oddFiles(t *testing.T, f *fixture) {
	f.sh(t, `mkdir -p t/none; echo x > t/none/f; chmod 000 t/none/f t/none; mkfifo t/pipe; ln -s / t/root
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('t/sock')"`)
	var names []string
	for _, e := range readArchive(t, f.tarOut(t, "t")) {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"none/", "none/f", "root"}, names); diff != "" {
		t.Errorf("archived (-want +got):\n%s", diff)
	}
	if out := f.sh(t, "stat -c %a t/none; chmod 700 t/none"); out != "0\n" {
		t.Errorf("archiving changed a mode to %q", out)
	}
	f.sh(t, "chmod 000 t")
	f.tarOut(t, "t")
	if out := f.sh(t, "stat -c %a t; chmod 700 t"); out != "0\n" {
		t.Errorf("archiving changed the mode of the archived directory to %q", out)
	}
	if err := f.TarOut(t.Context(), "missing", io.Discard); err == nil {
		t.Error("a missing directory was archived")
	}
	f.python(t, time.Minute, `
import os
for i in range(200):
    os.mkdir("long" * 8)
    os.chdir("long" * 8)
`)
	if err := f.TarOut(t.Context(), ".", io.Discard); !errors.Is(err, env.ErrRefused) {
		t.Errorf("a path that is too long: %v", err)
	}
}
