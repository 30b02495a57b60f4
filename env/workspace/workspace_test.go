package workspace

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// tarEntry is one path of a test's workspace. It is a symlink if target is not empty.
type tarEntry struct {
	text   string
	exec   bool
	target string
}

type files map[string]tarEntry

func (f files) tar(t testing.TB) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		e := f[name]
		h := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(e.text))}
		if e.exec {
			h.Mode = 0o755
		}
		if e.target != "" {
			h = tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: e.target}
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func readTar(t testing.TB, raw []byte) files {
	t.Helper()
	out := files{}
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeDir {
			out[h.Name] = tarEntry{text: string(text), exec: h.Mode&0o100 != 0 && h.Typeflag == tar.TypeReg, target: h.Linkname}
		}
	}
}

// repo is an env.Tree with these files.
type repo struct {
	t testing.TB
	f files
}

func (r repo) SHA256() string             { return schemas.HashBytes(r.f.tar(r.t)) }
func (r repo) WriteTar(w io.Writer) error { _, err := w.Write(r.f.tar(r.t)); return err }

func open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) mustImport(t testing.TB, f files) string {
	t.Helper()
	tree, err := s.Import(t.Context(), bytes.NewReader(f.tar(t)))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func checkRoundTrip(t testing.TB, s *Store, base, final files) {
	t.Helper()
	a, b := s.mustImport(t, base), s.mustImport(t, final)
	patch, err := s.DiffTrees(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Apply(t.Context(), a, patch)
	if err != nil {
		t.Fatalf("%v\nbase %v\nfinal %v\npatch:\n%s", err, base, final, patch)
	}
	if got != b {
		t.Fatalf("base + patch = %s, want %s\nbase %v\nfinal %v\npatch:\n%s", got, b, base, final, patch)
	}
}

func TestImportExportKeepsEverything(t *testing.T) {
	s := open(t)
	want := files{
		"a.py": {text: "x = 1\n"}, "bin/run": {text: "#!/bin/sh\n", exec: true}, "link": {target: "../../etc/passwd"},
		"a/b/c.txt": {text: "no newline"}, "a.b": {text: ""}, "crlf.txt": {text: "a\r\nb\r\n"}, "blob": {text: "\x00\xff\n\x00"},
		"näme with space\n\"q\"": {text: "odd name\n"}, ".gitattributes": {text: "* text eol=crlf -diff\n"},
	}
	tree := s.mustImport(t, want)
	var out, again bytes.Buffer
	if err := s.Export(t.Context(), tree, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, readTar(t, out.Bytes()), cmp.AllowUnexported(tarEntry{})); diff != "" {
		t.Errorf("exported files differ (-want +got):\n%s", diff)
	}
	if err := s.Export(t.Context(), tree, &again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("a second export differs (error %v)", err)
	}
}

func TestTreeHashEqualsThatOfGit(t *testing.T) {
	f := files{"a.py": {text: "x\n"}, "a/b": {text: "y\n", exec: true}, "a-b": {text: ""}, "l": {target: "a.py"}}
	dir := t.TempDir()
	for name, e := range f {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if e.exec {
			mode = 0o755
		}
		if e.target != "" {
			if err := os.Symlink(e.target, p); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(p, []byte(e.text), mode); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.Command("sh", "-c", "git init -q . && git add -A && git write-tree")
	sh.Dir = dir
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := open(t).mustImport(t, f); got != strings.TrimSpace(string(out)) {
		t.Errorf("tree = %s, git says %s", got, out)
	}
}

func TestImportIgnoresCachesAndOwnGit(t *testing.T) {
	s := open(t)
	wanted := files{"a.py": {text: "1\n"}, "sub/x": {text: "2\n"}}
	withCaches := maps.Clone(wanted)
	for _, name := range []string{".git/config", "__pycache__/a.pyc", "sub/__pycache__/x.pyc", ".pytest_cache/v", ".hypothesis/constants/0a", ".git/hooks/.git/x"} {
		withCaches[name] = tarEntry{text: "junk"}
	}
	if a, b := s.mustImport(t, wanted), s.mustImport(t, withCaches); a != b {
		t.Errorf("caches changed the tree: %s, %s", a, b)
	}
}

func TestImportRefusesHostileEntries(t *testing.T) {
	reg := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	cases := map[string][]tar.Header{
		"outside":         {reg("a/../../x")},
		"absolute":        {reg("/etc/passwd")},
		"nested git":      {reg("sub/.git/config")},
		"nested git case": {reg("sub/.GIT/config")},
		"top git case":    {reg(".Git/config")},
		"git file":        {reg("sub/.git")},
		"twice":           {reg("a"), reg("./a")},
		"below a file":    {reg("a"), reg("a/b")},
		"below a link":    {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, reg("a/b")},
		"dir over file":   {reg("a/b"), reg("a")},
		"link to nowhere": {{Name: "a", Typeflag: tar.TypeLink, Linkname: "../b"}},
		"hard link early": {{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}, reg("b")},
		"long name":       {reg(strings.Repeat("n", 256))},
		"long path":       {reg(strings.Repeat("n/", 2100) + "n")},
		"big file":        {{Name: "a", Typeflag: tar.TypeReg, Size: MaxFileBytes + 1}},
	}
	for name, heads := range cases {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			w := tar.NewWriter(&buf)
			for _, h := range heads {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			_, err := open(t).Import(t.Context(), &buf)
			if _, ok := errors.AsType[*RefusedError](err); !ok || !errors.Is(err, env.ErrRefused) {
				t.Errorf("Import = %v, want a RefusedError", err)
			}
		})
	}
}

func TestImportCopiesHardLinksAndSkipsDevices(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir}, {Name: "./empty/", Typeflag: tar.TypeDir},
		{Name: "./a", Typeflag: tar.TypeReg, Size: 2, Mode: 0o755}, {Name: "./b", Typeflag: tar.TypeLink, Linkname: "./a"},
		{Name: "./pipe", Typeflag: tar.TypeFifo},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			io.WriteString(w, "hi")
		}
	}
	s := open(t)
	got, err := s.Import(t.Context(), &buf)
	if err != nil {
		t.Fatal(err)
	}
	if want := s.mustImport(t, files{"a": {text: "hi", exec: true}, "b": {text: "hi", exec: true}}); got != want {
		t.Errorf("tree = %s, want %s", got, want)
	}
}

func TestPlacementIsAGitRepository(t *testing.T) {
	s := open(t)
	r := repo{t, files{"a.py": {text: "x = 1\n"}, "d/run": {text: "#!/bin/sh\n", exec: true}, "l": {target: "a.py"}}}
	var first, second bytes.Buffer
	if err := s.Placement(t.Context(), r, &first); err != nil {
		t.Fatal(err)
	}
	if err := open(t).Placement(t.Context(), r, &second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the placement of another store differs (error %v)", err)
	}
	dir := t.TempDir()
	un := exec.Command("tar", "-x")
	un.Dir, un.Stdin = dir, &first
	if out, err := un.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sh := func(script string) string {
		t.Helper()
		c := exec.Command("sh", "-ec", script)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := sh("git status --porcelain; git fsck --strict; git log --format='%an %s %ad' --date=short; git stash list; git remote; git reflog"); got != "tracesmith base 2000-01-01" {
		t.Errorf("git reports %q for the new repository", got)
	}
	sh("mkdir __pycache__ && touch __pycache__/a.pyc && echo 'x = 2' > a.py")
	if got := sh("git status --porcelain"); got != "M a.py" {
		t.Errorf("git status = %q", got)
	}
	if got := sh("git diff --stat | tail -1; git stash -q; cat a.py; git stash pop -q; cat a.py"); got != "1 file changed, 1 insertion(+), 1 deletion(-)\nx = 1\nx = 2" {
		t.Errorf("git diff and stash report %q", got)
	}
	pack := exec.Command("tar", "-c", ".")
	pack.Dir = dir
	final, err := pack.Output()
	if err != nil {
		t.Fatal(err)
	}
	patch, tree, _, err := s.Diff(t.Context(), r, bytes.NewReader(final))
	if err != nil {
		t.Fatal(err)
	}
	base, err := s.Base(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Apply(t.Context(), base, patch); err != nil || got != tree || !bytes.Contains(patch, []byte("+x = 2")) {
		t.Errorf("patch %q rebuilds %s (error %v), want %s", patch, got, err, tree)
	}
}

func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			r := repo{t, files{"a": {text: "same\n"}}}
			if err := s.Placement(t.Context(), r, io.Discard); err != nil {
				t.Error(err)
			}
			checkRoundTrip(t, s, r.f, files{"a": {text: fmt.Sprint(i % 3)}, "b": {text: "same"}})
		})
	}
	wg.Wait()
}

func TestDamagedObjectIsNoticed(t *testing.T) {
	s := open(t)
	tree := s.mustImport(t, files{"a": {text: "x"}})
	h, err := parseHash(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.objectPath(h), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Files(t.Context(), tree); err == nil || !strings.Contains(err.Error(), "remove "+s.dir) {
		t.Errorf("Files = %v, want the remedy", err)
	}
}

func BenchmarkEpisode(b *testing.B) {
	s := open(b)
	base := files{}
	for i := range 60 {
		base[fmt.Sprintf("pkg/m%d.py", i)] = tarEntry{text: strings.Repeat(fmt.Sprintf("line %d\n", i), 80)}
	}
	r := repo{b, base}
	final := maps.Clone(base)
	for b.Loop() {
		final["pkg/m7.py"] = tarEntry{text: fmt.Sprint(b.N, rand.Int())}
		patch, tree, _, err := s.Diff(b.Context(), r, bytes.NewReader(final.tar(b)))
		if err != nil {
			b.Fatal(err)
		}
		start, err := s.Base(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if got, err := s.Apply(b.Context(), start, patch); err != nil || got != tree {
			b.Fatal(got, err)
		}
	}
}
