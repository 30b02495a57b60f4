package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
)

func num(n int) *int            { return &n }
func some(s string) *string     { return &s }
func existing(rel string) place { return place{Rel: rel, Exists: true} }

func TestRewrite(t *testing.T) {
	const abc = "a\nb\nc\n"
	for _, c := range []struct {
		name, old string
		args      editArgs
		want, did string
	}{
		{"one line", abc, editArgs{NewCode: "B", Start: num(2)}, "a\nB\nc\n", "Replaced line 2 of f with 1 line."},
		{"its newline changes nothing", abc, editArgs{NewCode: "B\n", Start: num(2)}, "a\nB\nc\n", ""},
		{"a blank line", abc, editArgs{NewCode: "\n", Start: num(2)}, "a\n\nc\n", ""},
		{"range", abc, editArgs{NewCode: "X\nY\nZ", Start: num(1), End: num(2)}, "X\nY\nZ\nc\n", "Replaced lines 1-2 of f with 3 lines."},
		{"end is clamped", abc, editArgs{NewCode: "X", Start: num(2), End: num(9)}, "a\nX\n", "Replaced lines 2-3 of f with 1 line."},
		{"delete", abc, editArgs{Start: num(2), End: num(3)}, "a\n", "Deleted lines 2-3 of f."},
		{"delete all", abc, editArgs{Start: num(1), End: num(3)}, "", "Deleted lines 1-3 of f."},
		{"append", abc, editArgs{NewCode: "d", Start: num(4)}, "a\nb\nc\nd\n", "Appended 1 line to f."},
		{"append to empty", "", editArgs{NewCode: "d\n", Start: num(1)}, "d\n", "Appended 1 line to f."},
		{"append, no final newline", "a\nb", editArgs{NewCode: "c", Start: num(3)}, "a\nb\nc", ""},
		{"last line, no final newline", "a\nb", editArgs{NewCode: "B\n", Start: num(2)}, "a\nB", ""},
		{"delete last, no final newline", "a\nb", editArgs{Start: num(2)}, "a", ""},
		{"first line, no final newline", "a\nb", editArgs{NewCode: "A", Start: num(1)}, "A\nb", ""},
		{"crlf", "a\r\nb\r\n", editArgs{NewCode: "x\ny", Start: num(2)}, "a\r\nx\r\ny\r\n", ""},
		{"crlf from crlf", "a\r\nb\r\n", editArgs{NewCode: "x\r\ny\r\n", Start: num(1)}, "x\r\ny\r\nb\r\n", ""},
		{"crlf by text", "a\r\nb\r\nc\r\n", editArgs{OldCode: some("a\nb"), NewCode: "x"}, "x\r\nc\r\n", ""},
		{"mixed ends stay", "a\r\nb\nc\n", editArgs{NewCode: "B", Start: num(2)}, "a\r\nB\nc\n", ""},
		{"whole", abc, editArgs{NewCode: "x"}, "x\n", "Replaced the whole of f (3 lines) with 1 line."},
		{"whole, no final newline", "a", editArgs{NewCode: "x"}, "x", ""},
		{"by text", abc, editArgs{OldCode: some("b\nc"), NewCode: "X"}, "a\nX\n", "Replaced text in lines 2-3 of f."},
		{"delete text", abc, editArgs{OldCode: some("b\n")}, "a\nc\n", "Replaced text in line 2 of f."},
		{"other bytes stay", "\xe9\nb\n", editArgs{NewCode: "B", Start: num(2)}, "\xe9\nB\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, did, err := rewrite(existing("f"), c.old, c.args)
			if err != nil || text != c.want {
				t.Errorf("got %q, %v; want %q", text, err, c.want)
			}
			if c.did != "" && did != c.did {
				t.Errorf("says %q, want %q", did, c.did)
			}
		})
	}
	for _, c := range []struct {
		name string
		args editArgs
		says string
	}{
		{"end alone", editArgs{NewCode: "x", End: num(2)}, "end=2 has no start"},
		{"reversed", editArgs{NewCode: "x", Start: num(3), End: num(2)}, "greater than end"},
		{"zero", editArgs{NewCode: "x", Start: num(0)}, "counted from 1"},
		{"end zero", editArgs{NewCode: "x", Start: num(1), End: num(0)}, "counted from 1"},
		{"beyond", editArgs{NewCode: "x", Start: num(5)}, "give start=4"},
		{"nothing", editArgs{}, "new_code is empty"},
		{"both ways", editArgs{OldCode: some("a"), Start: num(1)}, "not both"},
		{"no such text", editArgs{OldCode: some("zz"), NewCode: "x"}, "does not occur"},
		{"other spaces", editArgs{OldCode: some("  b "), NewCode: "x"}, "stand at line 2"},
		{"twice", editArgs{OldCode: some("\n"), NewCode: "x"}, "occurs 3 times in f (at lines 1, 2, 3)"},
	} {
		if _, _, err := rewrite(existing("f"), abc, c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

func TestChanged(t *testing.T) {
	for _, c := range []struct {
		old, text             string
		first, removed, added int
	}{
		{"a\nb\nc\n", "a\nB\nc\n", 2, 1, 1},
		{"a\nb\nc\n", "a\nc\n", 2, 1, 0},
		{"a\nb\n", "a\nx\ny\nb\n", 2, 0, 2},
		{"a\n", "a\nb\n", 2, 0, 1},
		{"", "a\nb\n", 1, 0, 2},
		{"a\nb\n", "", 1, 2, 0},
		{"a\nb", "a\nb\nc", 2, 1, 2},
		{"a\nb\n", "x\ny\nz\n", 1, 2, 3},
	} {
		got := changed("f", c.old, c.text)
		if d := cmp.Diff(env.Edit{File: "f", First: c.first, Removed: c.removed, Added: c.added}, got); d != "" {
			t.Errorf("%q -> %q (-want +got)\n%s", c.old, c.text, d)
		}
	}
}

func TestEdit(t *testing.T) {
	b := newBench(t, project)
	got := b.ok("edit", args{"path": "a.py", "new_code": "    return x + 1", "start": 4})
	want := "Replaced line 4 of a.py with 1 line.\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n import os\n \n def f(x):\n-    return x\n+    return x + 1\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := b.content("a.py"); got != "import os\n\ndef f(x):\n    return x + 1\n" {
		t.Errorf("file is %q", got)
	}
	o := b.call("edit", args{"path": "new/dir/file.py", "new_code": "EOF\n$(touch /testbed/bad)\nx = 1\n"})
	if !strings.HasPrefix(o.Text, "Created new/dir/file.py with 3 lines.\n--- /dev/null\n+++ b/new/dir/file.py\n") || b.content("new/dir/file.py") != "EOF\n$(touch /testbed/bad)\nx = 1\n" {
		t.Errorf("created: %+v", o)
	}
	b.ok("edit", args{"path": "run.sh", "new_code": "#!/bin/bash", "start": 1})
	b.ok("edit", args{"path": "link.py", "new_code": "# sum", "start": "2"})
	if got := b.sh("stat -c %a run.sh; readlink link.py; sed -n 2p src/pkg/mod.py"); got != "755\nsrc/pkg/mod.py\n# sum\n" {
		t.Errorf("mode, link, target: %q", got)
	}
	wantEdits := []env.Edit{
		{File: "a.py", First: 4, Removed: 1, Added: 1}, {File: "new/dir/file.py", First: 1, Added: 3},
		{File: "run.sh", First: 1, Removed: 1, Added: 1}, {File: "src/pkg/mod.py", First: 2, Removed: 1, Added: 1},
	}
	if d := cmp.Diff(wantEdits, b.edits); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
	b.refused("edit", args{"path": "a.py", "new_code": "import os", "start": 1}, "Nothing changed")
	b.refused("edit", args{"path": "../x.py", "new_code": "x"}, "outside")
	b.refused("edit", args{"path": "outdir/x.py", "new_code": "x"}, "outside")
	b.refused("edit", args{"path": "out", "new_code": "x"}, "outside")
	b.refused("edit", args{"path": "broken", "new_code": "x"}, "does not exist")
	b.refused("edit", args{"path": "src", "new_code": "x"}, "is a directory")
	b.refused("edit", args{"path": "src/new/", "new_code": "x"}, "directory")
	b.refused("edit", args{"path": ".git/config", "new_code": "x"}, "belongs to git")
	b.refused("edit", args{"path": "bin.dat", "new_code": "x"}, "binary")
	b.refused("edit", args{"path": "none.py", "new_code": "x", "start": 3}, "does not exist")
	b.refused("edit", args{"path": "none.py", "new_code": "x", "old_code": "y"}, "does not exist")
	b.refused("edit", args{"path": "a.py/b.py", "new_code": "x"})
	b.refused("edit", args{"path": strings.Repeat("n", 300), "new_code": "x"}, "too long")
	if len(b.edits) != len(wantEdits) {
		t.Errorf("a refused edit caused an event: %+v", b.edits)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add("a\nb\n", "x\n", 1, 2, "b")
	f.Add("a\r\nb", "", 2, 2, "")
	f.Fuzz(func(t *testing.T, old, newCode string, start, end int, oldCode string) {
		for _, a := range []editArgs{
			{NewCode: newCode, Start: &start, End: &end}, {NewCode: newCode, OldCode: &oldCode}, {NewCode: newCode},
		} {
			text, _, err := rewrite(existing("f"), old, a)
			if err != nil {
				continue
			}
			e := changed("f", old, text)
			if e.First < 1 || e.Removed < 0 || e.Added < 0 {
				t.Fatalf("%q -> %q: %+v", old, text, e)
			}
			lines := func(s string) []string {
				all := strings.SplitAfter(s, "\n")
				if all[len(all)-1] == "" {
					all = all[:len(all)-1]
				}
				return all
			}
			a, b := lines(old), lines(text)
			rebuilt := strings.Join(a[:e.First-1], "") + strings.Join(b[e.First-1:e.First-1+e.Added], "") + strings.Join(a[e.First-1+e.Removed:], "")
			if rebuilt != text {
				t.Fatalf("%q -> %q is not %+v", old, text, e)
			}
		}
	})
}
