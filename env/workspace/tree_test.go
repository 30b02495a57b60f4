package workspace_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
)

var _ env.Tree = (*workspace.Tree)(nil)

// write creates a file below dir, and its parent directories.
func write(t *testing.T, dir, name, text string, mode fs.FileMode) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(full, mode); err != nil {
		t.Fatal(err)
	}
}

func fromDir(t *testing.T, dir string) *workspace.Tree {
	t.Helper()
	tr, err := workspace.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTarIsComplete(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "run.sh", "#!/bin/sh\n", 0o700)
	write(t, dir, "pkg/__init__.py", "", 0o600)
	write(t, dir, "pkg/data.bin", "\x00\xff", 0o444)
	write(t, dir, ".git/HEAD", "ref", 0o644)
	write(t, dir, "pkg/__pycache__/x.pyc", "x", 0o644)
	write(t, dir, "sub/.git", "gitdir: elsewhere", 0o644)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "pkg", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pkg", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := fromDir(t, dir).WriteTar(&buf); err != nil {
		t.Fatal(err)
	}
	type member struct {
		Name, Link, Text string
		Mode             int64
	}
	var got []member
	tr := tar.NewReader(&buf)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if !hdr.ModTime.Equal(time.Unix(0, 0)) || hdr.Uid != 0 || hdr.Gid != 0 || hdr.Uname != "" {
			t.Errorf("%s: times and owners must be fixed: %+v", hdr.Name, hdr)
		}
		got = append(got, member{hdr.Name, hdr.Linkname, string(text), hdr.Mode})
	}
	want := []member{
		{"alias", "pkg", "", 0o777},
		{"pkg/", "", "", 0o755},
		{"pkg/__init__.py", "", "", 0o644},
		{"pkg/data.bin", "", "\x00\xff", 0o644},
		{"pkg/link", "/etc/passwd", "", 0o777},
		{"run.sh", "", "#!/bin/sh\n", 0o755},
		{"sub/", "", "", 0o755},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tar (-want +got):\n%s", diff)
	}
}

// Names, modes, link targets and contents change the hash, and nothing else does.
func TestSHA256(t *testing.T) {
	base := func(t *testing.T) string {
		dir := t.TempDir()
		write(t, dir, "a.py", "one", 0o644)
		write(t, dir, "b/c.py", "two", 0o644)
		if err := os.Symlink("a.py", filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := fromDir(t, base(t)).SHA256()
	if len(first) != 64 {
		t.Fatalf("SHA256 = %q", first)
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, dir string)
		same   bool
	}{
		"content": {change: func(t *testing.T, dir string) { write(t, dir, "a.py", "onf", 0o644) }},
		"mode":    {change: func(t *testing.T, dir string) { write(t, dir, "a.py", "one", 0o755) }},
		"name": {change: func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "a.py"), filepath.Join(dir, "z.py")); err != nil {
				t.Fatal(err)
			}
		}},
		"target": {change: func(t *testing.T, dir string) {
			link := filepath.Join(dir, "l")
			if err := errors.Join(os.Remove(link), os.Symlink("b", link)); err != nil {
				t.Fatal(err)
			}
		}},
		"link becomes file": {change: func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "l", "a.py", 0o644)
		}},
		"empty directory": {change: func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		"time": {same: true, change: func(t *testing.T, dir string) {
			if err := os.Chtimes(filepath.Join(dir, "a.py"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}},
		"umask": {same: true, change: func(t *testing.T, dir string) { write(t, dir, "a.py", "one", 0o400) }},
		"leftovers": {same: true, change: func(t *testing.T, dir string) {
			write(t, dir, "b/__pycache__/c.pyc", "x", 0o644)
			write(t, dir, ".pytest_cache/v", "x", 0o644)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := base(t)
			tc.change(t, dir)
			if got := fromDir(t, dir).SHA256(); (got == first) != tc.same {
				t.Errorf("hash equal = %v, want %v", got == first, tc.same)
			}
		})
	}
}

func TestSameContentSameHash(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p/m.py", "x = 1\n", 0o644)
	mem := fstest.MapFS{"repo/p/m.py": {Data: []byte("x = 1\n"), Mode: 0o444}}
	fromMem, err := workspace.FromFS(mem, "repo")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fromMem.SHA256(), fromDir(t, dir).SHA256(); got != want {
		t.Errorf("embedded %s, on disk %s", got, want)
	}
}

func TestChangedFileIsNoticed(t *testing.T) {
	for name, text := range map[string]string{"longer": "x = 12\n", "shorter": "x\n", "as long": "x = 2\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "m.py", "x = 1\n", 0o644)
			tr := fromDir(t, dir)
			write(t, dir, "m.py", text, 0o644)
			if err := tr.WriteTar(io.Discard); err == nil || !strings.Contains(err.Error(), "m.py changed") {
				t.Errorf("WriteTar = %v, want an error about m.py", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(t *testing.T, dir string) string
		want []string
	}{
		"missing": {
			make: func(t *testing.T, dir string) string { return filepath.Join(dir, "none") },
			want: []string{"none", "no such file"},
		},
		"file": {
			make: func(t *testing.T, dir string) string {
				write(t, dir, "m.py", "", 0o644)
				return filepath.Join(dir, "m.py")
			},
			want: []string{"m.py is not a directory"},
		},
		"pipe": {
			make: func(t *testing.T, dir string) string {
				if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
					t.Fatal(err)
				}
				return dir
			},
			want: []string{"pipe is neither a file"},
		},
		"huge": {
			make: func(t *testing.T, dir string) string {
				write(t, dir, "data/raw.bin", "", 0o644)
				if err := os.Truncate(filepath.Join(dir, "data/raw.bin"), workspace.MaxRepositoryBytes+1); err != nil {
					t.Fatal(err)
				}
				return dir
			},
			want: []string{"the limit is 512 MB", "data (512 MB)"},
		},
		"name": {
			make: func(t *testing.T, dir string) string {
				write(t, dir, "caf\xe9.py", "", 0o644)
				return dir
			},
			want: []string{`"caf\xe9.py" is not UTF-8`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workspace.FromDir(tc.make(t, t.TempDir()))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// unreadableFS returns a permission error for one file, as the system does for users who are not root.
type unreadableFS struct{ fstest.MapFS }

func (l unreadableFS) Open(name string) (fs.File, error) {
	if name == "secret.py" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.MapFS.Open(name)
}

func TestUnreadableFileIsNamed(t *testing.T) {
	_, err := workspace.FromFS(unreadableFS{fstest.MapFS{"secret.py": {Data: []byte("x")}}}, ".")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "secret.py") {
		t.Errorf("error = %v, want one naming secret.py", err)
	}
}

func TestTooManyFilesAreRefused(t *testing.T) {
	many := fstest.MapFS{}
	for i := range workspace.MaxRepositoryFiles + 1 {
		many[fmt.Sprintf("f%06d", i)] = &fstest.MapFile{}
	}
	_, err := workspace.FromFS(many, ".")
	if err == nil || !strings.Contains(err.Error(), "more than 100000 files (reading stopped at f100000)") {
		t.Errorf("error = %v", err)
	}
}
