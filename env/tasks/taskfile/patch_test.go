package taskfile

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func TestPatches(t *testing.T) {
	base := fromDir(t, writeFiles(t, map[string]string{"a.py": "1\n2\n3\n", "d/b.py": "b\n", "c.sh": "c\n"}))
	for name, c := range map[string]struct {
		patch, want string
	}{
		"change":  {"--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-2\n+two\n", "a.py=1|two|3| c.sh=c| d/b.py=b|"},
		"add":     {"diff --git a/n/m.py b/n/m.py\nnew file mode 100755\n--- /dev/null\n+++ b/n/m.py\n@@ -0,0 +1 @@\n+m\n", "a.py=1|2|3| c.sh=c| d/b.py=b| n/m.py*=m|"},
		"delete":  {"diff --git a/d/b.py b/d/b.py\ndeleted file mode 100644\n--- a/d/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", "a.py=1|2|3| c.sh=c|"},
		"rename":  {"diff --git a/d/b.py b/e/b.py\nsimilarity index 100%\nrename from d/b.py\nrename to e/b.py\n", "a.py=1|2|3| c.sh=c| e/b.py=b|"},
		"mode":    {"diff --git a/c.sh b/c.sh\nold mode 100644\nnew mode 100755\n", "a.py=1|2|3| c.sh*=c| d/b.py=b|"},
		"link":    {"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.py\n\\ No newline at end of file\n", "a.py=1|2|3| c.sh=c| d/b.py=b| l@=a.py"},
		"misfit":  {"--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-x\n+y\n", "does not apply to a.py"},
		"missing": {"--- a/z.py\n+++ b/z.py\n@@ -1 +1 @@\n-x\n+y\n", "does not apply to z.py: file does not exist"},
		"unnamed": {"diff --git a/z.py b/e.py\n" +
			"similarity index 100%\nrename from z.py\nrename to e.py\n", "does not apply to z.py: file does not exist"},
		"there":   {"--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+y\n", "does not apply to a.py: file already exists"},
		"outside": {"--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+y\n", "a repository cannot contain"},
		"git":     {"--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+y\n", "a repository cannot contain"},
		"below":   {"--- /dev/null\n+++ b/a.py/x\n@@ -0,0 +1 @@\n+y\n", "lies below a.py"},
		"text":    {"hello", "changes no file"},
	} {
		out, err := Apply(base, []byte(c.patch))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for _, p := range out.Paths() {
				text, exec, link, err := out.File(p)
				if err != nil {
					continue // a directory
				}
				got += " " + p + map[bool]string{true: "*"}[exec] + map[bool]string{true: "@"}[link] + "=" + strings.ReplaceAll(string(text), "\n", "|")
			}
		}
		if !strings.Contains(got, c.want) || err == nil && strings.TrimSpace(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An edited tree equals a tree that is read from an edited directory.
func TestEditedTreesAreOrdinaryTrees(t *testing.T) {
	base := healthy(t)
	edited, err := Apply(base, []byte(bug))
	if err != nil {
		t.Fatal(err)
	}
	same := fromDir(t, writeFiles(t, map[string]string{"pkg/calc.py": "def double(x):\n    return 3 * x\n", "tests/test_calc.py": "x\n"}))
	if edited.SHA256() != same.SHA256() || edited.SHA256() == base.SHA256() {
		t.Errorf("edited %s, read %s, before %s", edited.SHA256(), same.SHA256(), base.SHA256())
	}
	back, err := Apply(edited, []byte(gold))
	if err != nil || back.SHA256() != base.SHA256() {
		t.Errorf("gold does not undo the bug: %v", err)
	}
}

func TestHostileTars(t *testing.T) {
	for want, heads := range map[string][]tar.Header{
		"leads outside the tree":  {{Name: "../x", Typeflag: tar.TypeReg}},
		`"/etc/x" leads outside`:  {{Name: "/etc/x", Typeflag: tar.TypeReg}},
		"occurs twice":            {{Name: "x", Typeflag: tar.TypeReg}, {Name: "./x", Typeflag: tar.TypeReg}},
		"lies below l, which":     {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "l/x", Typeflag: tar.TypeReg}},
		"is not an earlier file":  {{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"neither a file, a direc": {{Name: "x", Typeflag: tar.TypeFifo}},
		"is not a tar file":       nil,
	} {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, h := range heads {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text := buf.String()
		if heads == nil {
			text = strings.Repeat("no tar", 200)
		}
		dir := writeFiles(t, map[string]string{"x.tar": text})
		if _, err := Open(filepath.Join(dir, "x.tar"), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, _, _, err := healthy(t).File("pkg"); !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("File of a directory: %v", err)
	}
}
