package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
)

func num(n int) *int            { return &n }
func some(s string) *string     { return &s }
func yes() *bool                { return new(true) }
func existing(rel string) place { return place{Rel: rel, Exists: true} }

// rewrite plans an edit of the file f and applies it. It returns the new text, the answer
// that describes the edit, and the splices.
func rewrite(old string, a editArgs) (text, summary string, splices []splice, err error) {
	splices, summary, err = planEdit(existing("f"), old, a)
	if err != nil {
		return "", "", nil, err
	}
	return applySplices(old, splices), summary, splices, nil
}

func TestB11EditArguments(t *testing.T) {
	b := newToolSession(t, files{"a.py": "1\n2\n3\n"})
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "a.py", "start": 2.0, "end": "3", "new_code": "x", "old_code": nil, "insert_after": nil, "replace_all": nil}, "1\nx\n"},
		{args{"path": "a.py", "start": "3", "end": nil, "new_code": "y"}, "1\nx\ny\n"},
		{args{"path": "a.py", "start": 1, "new_code": nil}, "x\ny\n"},
		{args{"path": "a.py", "start": 1}, "y\n"},
		{args{"path": "a.py", "start": 1, "new_code": 404}, "404\n"},
		{args{"path": "a.py", "insert_after": 0, "new_code": "0"}, "0\n404\n"},
		{args{"path": "a.py", "old_code": "404", "new_code": "4", "replace_all": "true"}, "0\n4\n"},
	} {
		b.ok("edit", c.args)
		if got := b.content("a.py"); got != c.want {
			t.Errorf("%v made %q, want %q", c.args, got, c.want)
		}
	}
	b.refused("edit", args{"path": "new.py"}, "give its text as new_code")
	b.refused("edit", args{"path": "a.py"}, "no lines are selected")
	if o := b.call("edit", args{"path": "a.py", "new_text": "x"}); !strings.Contains(o.Text, `unknown argument "new_text" (did you mean "new_code"?)`) {
		t.Errorf("%+v", o)
	}
}

func TestB12EditModes(t *testing.T) {
	const abc = "a\nb\nc\n"
	for _, c := range []struct {
		name, old     string
		args          editArgs
		want, summary string
	}{
		{"one line", abc, editArgs{NewCode: some("B"), Start: num(2)}, "a\nB\nc\n", "Replaced line 2 of f with 1 line."},
		{"its newline changes nothing", abc, editArgs{NewCode: some("B\n"), Start: num(2)}, "a\nB\nc\n", ""},
		{"a blank line", abc, editArgs{NewCode: some("\n"), Start: num(2)}, "a\n\nc\n", ""},
		{"range", abc, editArgs{NewCode: some("X\nY\nZ"), Start: num(1), End: num(2)}, "X\nY\nZ\nc\n", "Replaced lines 1-2 of f with 3 lines."},
		{"end is clamped", abc, editArgs{NewCode: some("X"), Start: num(2), End: num(9)}, "a\nX\n", "Replaced lines 2-3 of f with 1 line."},
		{"delete", abc, editArgs{Start: num(2), End: num(3)}, "a\n", "Deleted lines 2-3 of f."},
		{"delete all", abc, editArgs{Start: num(1), End: num(3)}, "", "Deleted lines 1-3 of f."},
		{"append", abc, editArgs{NewCode: some("d"), Start: num(4)}, "a\nb\nc\nd\n", "Appended 1 line to f."},
		{"append to empty", "", editArgs{NewCode: some("d\n"), Start: num(1)}, "d\n", "Appended 1 line to f."},
		{"append, no final newline", "a\nb", editArgs{NewCode: some("c"), Start: num(3)}, "a\nb\nc", ""},
		{"last line, no final newline", "a\nb", editArgs{NewCode: some("B\n"), Start: num(2)}, "a\nB", ""},
		{"delete last, no final newline", "a\nb", editArgs{Start: num(2)}, "a", ""},
		{"first line, no final newline", "a\nb", editArgs{NewCode: some("A"), Start: num(1)}, "A\nb", ""},
		{"crlf", "a\r\nb\r\n", editArgs{NewCode: some("x\ny"), Start: num(2)}, "a\r\nx\r\ny\r\n", ""},
		{"crlf from crlf", "a\r\nb\r\n", editArgs{NewCode: some("x\r\ny\r\n"), Start: num(1)}, "x\r\ny\r\nb\r\n", ""},
		{"crlf by text", "a\r\nb\r\nc\r\n", editArgs{OldCode: some("a\nb"), NewCode: some("x")}, "x\r\nc\r\n", ""},
		{"mixed ends stay", "a\r\nb\nc\n", editArgs{NewCode: some("B"), Start: num(2)}, "a\r\nB\nc\n", ""},
		{"empty text beside lines", abc, editArgs{OldCode: some(""), NewCode: some("x"), Start: num(2)}, "a\nx\nc\n", ""},
		{"empty text of an empty file", "", editArgs{OldCode: some(""), NewCode: some("x")}, "x", ""},
		{"whole", abc, editArgs{NewCode: some("x")}, "x\n", "Replaced all of f (3 lines) with 1 line."},
		{"whole, no final newline", "a", editArgs{NewCode: some("x")}, "x", ""},
		{"by text", abc, editArgs{OldCode: some("b\nc"), NewCode: some("X")}, "a\nX\n", "Replaced text in lines 2-3 of f."},
		{"delete text", abc, editArgs{OldCode: some("b\n")}, "a\nc\n", "Replaced text in line 2 of f."},
		{"other bytes stay", "\xe9\nb\n", editArgs{NewCode: some("B"), Start: num(2)}, "\xe9\nB\n", ""},
		{"insert at the top", abc, editArgs{NewCode: some("x"), InsertAfter: num(0)}, "x\na\nb\nc\n", "Inserted 1 line after line 0 of f."},
		{"insert", abc, editArgs{NewCode: some("x\ny\n"), InsertAfter: num(2)}, "a\nb\nx\ny\nc\n", "Inserted 2 lines after line 2 of f."},
		{"insert at the end", "a\nb", editArgs{NewCode: some("c"), InsertAfter: num(2)}, "a\nb\nc", ""},
		{"insert among crlf", "a\r\nb\r\n", editArgs{NewCode: some("x\ny"), InsertAfter: num(1)}, "a\r\nx\r\ny\r\nb\r\n", ""},
		{"mixed ends, crlf line", "a\r\nb\nc\n", editArgs{NewCode: some("x\ny"), Start: num(1)}, "x\r\ny\r\nb\nc\n", ""},
		{"mixed ends, by text", "a\r\nb\nc\r\n", editArgs{OldCode: some("a\nb"), NewCode: some("x\ny")}, "x\r\ny\nc\r\n", ""},
		{"mixed ends, up to the last line", "a\r\nb\nc\r\n", editArgs{OldCode: some("a\nb\nc\n"), NewCode: some("x\n")}, "x\r\n", ""},
		{"delete crlf at the end", "a\r\nb", editArgs{Start: num(2)}, "a", ""},
		{"mark stays, line 1", bom + "a\nb\n", editArgs{NewCode: some("x"), Start: num(1)}, bom + "x\nb\n", ""},
		{"mark stays, whole", bom + "a\n", editArgs{NewCode: some(bom + "x")}, bom + "x\n", ""},
		{"mark stays, by text", bom + "a\n", editArgs{OldCode: some(bom + "a"), NewCode: some("x")}, bom + "x\n", ""},
		{"mark stays, deleted line", bom + "a\nb\n", editArgs{Start: num(1)}, bom + "b\n", ""},
		{"every occurrence", "a b a\nb\na\n", editArgs{OldCode: some("a"), NewCode: some("xy"), ReplaceAll: yes()}, "xy b xy\nb\nxy\n", "Replaced text in 3 places in f (at lines 1, 1, 3)."},
		{"every one of one", abc, editArgs{OldCode: some("b"), NewCode: some("x"), ReplaceAll: yes()}, "a\nx\nc\n", "Replaced text in line 2 of f."},
		{"every one, deleted", "aXbX\nX\n", editArgs{OldCode: some("X"), ReplaceAll: yes()}, "ab\n\n", ""},
		{"overlapping", "aaa\n", editArgs{OldCode: some("aa"), NewCode: some("b"), ReplaceAll: yes()}, "ba\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, summary, _, err := rewrite(c.old, c.args)
			if err != nil || text != c.want {
				t.Errorf("got %q, %v; want %q", text, err, c.want)
			}
			if c.summary != "" && summary != c.summary {
				t.Errorf("says %q, want %q", summary, c.summary)
			}
		})
	}
}

func TestB14EditMistakes(t *testing.T) {
	const abc = "a\nb\nc\n"
	for _, c := range []struct {
		name string
		args editArgs
		says string
	}{
		{"end alone", editArgs{NewCode: some("x"), End: num(2)}, "end=2 without start"},
		{"reversed", editArgs{NewCode: some("x"), Start: num(3), End: num(2)}, "greater than end"},
		{"zero", editArgs{NewCode: some("x"), Start: num(0)}, "start at 1"},
		{"end zero", editArgs{NewCode: some("x"), Start: num(1), End: num(0)}, "start at 1"},
		{"beyond", editArgs{NewCode: some("x"), Start: num(5)}, "give start=4"},
		{"nothing", editArgs{}, "new_code is empty"},
		{"text that is empty", editArgs{OldCode: some(""), NewCode: some("q = 1")}, "old_code is empty, so it selects nothing in f (3 lines). Give the text to replace"},
		{"empty for empty", editArgs{OldCode: some(""), NewCode: some("")}, "old_code is empty"},
		{"both ways", editArgs{OldCode: some("a"), Start: num(1)}, "Give only one of"},
		{"no such text", editArgs{OldCode: some("zz"), NewCode: some("x")}, "does not occur"},
		{"other spaces", editArgs{OldCode: some("  b "), NewCode: some("x")}, "whitespace begins at line 2"},
		{"twice", editArgs{OldCode: some("\n"), NewCode: some("x")}, "occurs 3 times in f (at lines 1, 2, 3)"},
		{"three ways", editArgs{InsertAfter: num(1), Start: num(1)}, "Give only one of"},
		{"insert beyond", editArgs{InsertAfter: num(4), NewCode: some("x")}, "Give a number from 0 to 3"},
		{"insert before the top", editArgs{InsertAfter: num(-1), NewCode: some("x")}, "Give a number from 0 to 3"},
		{"insert nothing", editArgs{InsertAfter: num(1)}, "nothing to insert"},
		{"all of nothing", editArgs{ReplaceAll: yes(), NewCode: some("x")}, "needs old_code"},
		{"append nothing", editArgs{Start: num(4)}, "nothing to do"},
	} {
		if _, _, _, err := rewrite(abc, c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	old := "def total(items):\n    return sum(items)\n"
	if _, _, _, err := rewrite(old, editArgs{OldCode: some("return sum(itens)"), NewCode: some("x")}); err == nil || !strings.Contains(err.Error(), "Line 2 is similar: return sum(items).") {
		t.Errorf("nearest line: %v", err)
	}
	many := strings.Repeat("x\n", 12)
	if _, _, _, err := rewrite(many, editArgs{OldCode: some("x"), NewCode: some("y")}); err == nil || !strings.Contains(err.Error(), "occurs 12 times in f (at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, and 2 more)") || !strings.Contains(err.Error(), "replace_all") {
		t.Errorf("many: %v", err)
	}
}

// Events go from the last line to the first and use the old line numbers, so no event
// shifts the lines of the next one. Unchanged lines are not part of an event.
func TestB15EditEvents(t *testing.T) {
	type at struct{ first, removed, added int }
	const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for _, c := range []struct {
		name, old string
		args      editArgs
		want      []at
	}{
		{"replace one", ten, editArgs{NewCode: some("x"), Start: num(4)}, []at{{4, 1, 1}}},
		{"replace by more", ten, editArgs{NewCode: some("x\ny\nz"), Start: num(4), End: num(5)}, []at{{4, 2, 3}}},
		{"delete", ten, editArgs{Start: num(4), End: num(6)}, []at{{4, 3, 0}}},
		{"delete the first of equals", "x\nx\nx\n", editArgs{Start: num(1)}, []at{{1, 1, 0}}},
		{"delete the last of equals", "x\nx\nx\n", editArgs{Start: num(3)}, []at{{3, 1, 0}}},
		{"insert", ten, editArgs{NewCode: some("x\ny"), InsertAfter: num(4)}, []at{{5, 0, 2}}},
		{"insert an equal", "x\nx\n", editArgs{NewCode: some("x"), InsertAfter: num(0)}, []at{{1, 0, 1}}},
		{"insert at the top", ten, editArgs{NewCode: some("x"), InsertAfter: num(0)}, []at{{1, 0, 1}}},
		{"append", ten, editArgs{NewCode: some("x"), Start: num(11)}, []at{{11, 0, 1}}},
		{"append, no final newline", "a\nb", editArgs{NewCode: some("c"), Start: num(3)}, []at{{3, 0, 1}}},
		{"a range with lines that stay", ten, editArgs{NewCode: some("x\n4\n5\ny\n6"), Start: num(4), End: num(6)}, []at{{6, 0, 1}, {4, 0, 1}}},
		{"whole with lines that stay", ten, editArgs{NewCode: some("0\n1\n2\n3\nx\n5\n6\n7\n9\n10\n")}, []at{{8, 1, 0}, {4, 1, 1}, {1, 0, 1}}},
		{"whole, nothing in common", "a\nb\n", editArgs{NewCode: some("x\ny\nz\n")}, []at{{1, 2, 3}}},
		{"text within a line", ten, editArgs{OldCode: some("4"), NewCode: some("four")}, []at{{4, 1, 1}}},
		{"text over lines", ten, editArgs{OldCode: some("4\n5\n6"), NewCode: some("x")}, []at{{4, 3, 1}}},
		{"text with its end", ten, editArgs{OldCode: some("4\n")}, []at{{4, 1, 0}}},
		{"a line end", "ab\ncd\nef\n", editArgs{OldCode: some("b\nc"), NewCode: some("")}, []at{{1, 2, 1}}},
		{"every occurrence", "a\nx a x\nb\na\n", editArgs{OldCode: some("a"), NewCode: some("y\nz"), ReplaceAll: yes()}, []at{{4, 1, 2}, {2, 1, 2}, {1, 1, 2}}},
		{"all in one line", "a a a\nb\n", editArgs{OldCode: some("a"), NewCode: some("c"), ReplaceAll: yes()}, []at{{1, 1, 1}}},
		{"only line ends", "a\r\nb\n", editArgs{OldCode: some("a\nb"), NewCode: some("a\r\nb")}, nil},
		{"crlf", "a\r\nb\r\nc\r\n", editArgs{NewCode: some("x\ny"), Start: num(2)}, []at{{2, 1, 2}}},
		{"behind a mark", bom + "a\nb\nc\n", editArgs{Start: num(1)}, []at{{1, 1, 0}}},
		{"more than are told apart", strings.Repeat("a\nb\n", 150), editArgs{OldCode: some("a"), NewCode: some("x\ny"), ReplaceAll: yes()}, []at{{1, 299, 449}}},
	} {
		text, _, splices, err := rewrite(c.old, c.args)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if text == c.old {
			continue
		}
		var got []at
		for _, e := range editEvents("f", c.old, splices) {
			if e.File != "f" || e.Whole {
				t.Errorf("%s: %+v", c.name, e)
			}
			got = append(got, at{e.First, e.Removed, e.Added})
		}
		if d := cmp.Diff(fmt.Sprint(c.want), fmt.Sprint(got)); d != "" {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestB13EditAnswersWithADiff(t *testing.T) {
	b := newToolSession(t, project)
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
	b.refused("edit", args{"path": ".git/config", "new_code": "x"}, "belongs to Git")
	b.refused("edit", args{"path": "bin.dat", "new_code": "x"}, "binary")
	b.refused("edit", args{"path": "none.py", "new_code": "x", "start": 3}, "does not exist")
	b.refused("edit", args{"path": "none.py", "new_code": "x", "old_code": "y"}, "does not exist")
	b.refused("edit", args{"path": "a.py/b.py", "new_code": "x"})
	b.refused("edit", args{"path": strings.Repeat("n", 300), "new_code": "x"}, "too long")
	if len(b.edits) != len(wantEdits) {
		t.Errorf("a refused edit caused an event: %+v", b.edits)
	}
}

// An edit changes only what its arguments name. It keeps CRLF, the final newline, the
// mode and the byte order mark. An appended line is one line, and an empty new_code
// deletes lines. An end without a start is refused, and so is 0: it does not mean that
// the argument is missing.
// This test proves row WC15 of docs/internals/parity.md.
func TestWC15EditKeepsWhatItIsNotTold(t *testing.T) {
	b := newToolSession(t, files{"a.py": "1\n2\n3\n", "crlf.py": "1\r\n2\r\n", "bare": "1\n2", "mixed": "1\r\n2\n3\r\n", "bom.py": bom + "1\n2\n", "run": "#!/bin/sh\n"})
	b.refused("edit", args{"path": "a.py", "end": 2, "new_code": "x"}, "end=2 without start")
	b.refused("edit", args{"path": "a.py", "start": 1, "end": 0, "new_code": "x"}, "start at 1")
	b.refused("edit", args{"path": "a.py", "start": 9, "new_code": "x"}, "To append, give start=4.")
	for _, c := range []struct {
		args args
		file string
		want string
	}{
		{args{"start": 2, "new_code": ""}, "a.py", "1\n3\n"},
		{args{"start": 3.0, "new_code": "4"}, "a.py", "1\n3\n4\n"},
		{args{"start": 3, "new_code": "3"}, "crlf.py", "1\r\n2\r\n3\r\n"},
		{args{"new_code": "9\n8"}, "crlf.py", "9\r\n8\r\n"},
		{args{"start": 1, "new_code": "0"}, "bare", "0\n2"},
		{args{"start": 3, "new_code": "3\n"}, "bare", "0\n2\n3"},
		{args{"start": 2, "new_code": "x\ny"}, "mixed", "1\r\nx\ny\n3\r\n"},
		{args{"start": 3, "end": 4, "new_code": "z\nz"}, "mixed", "1\r\nx\nz\nz\n"},
		{args{"new_code": "3"}, "bom.py", bom + "3\n"},
		{args{"start": 1, "new_code": "#!/bin/bash\nexit 7"}, "run", "#!/bin/bash\nexit 7\n"},
	} {
		c.args["path"] = c.file
		b.ok("edit", c.args)
		if got := b.content(c.file); got != c.want {
			t.Errorf("%v made %q, want %q", c.args, got, c.want)
		}
	}
	if o := b.call("bash", args{"command": "./run"}); o.ExitCode == nil || *o.ExitCode != 7 {
		t.Errorf("the executable bit is gone: %+v", o)
	}
}

// The tools start no process in the sandbox and need only a few calls to the guest.
func TestWP3NoProcessPerPrimitive(t *testing.T) {
	b := newToolSession(t, project)
	counted := &countingSandbox{Sandbox: b.Sandbox}
	b.Sandbox = counted
	for _, c := range []struct {
		tool  string
		args  args
		calls int
	}{
		{"view", args{"path": "a.py"}, 2}, {"edit", args{"path": "a.py", "start": 1, "new_code": "import re"}, 3},
		{"grep", args{"pattern": "re"}, 2}, {"listdir", args{"depth": 2}, 2}, {"edit", args{"path": "new/a.py", "new_code": "x"}, 6},
	} {
		*counted = countingSandbox{Sandbox: counted.Sandbox}
		b.ok(c.tool, c.args)
		if counted.processes > 0 || counted.calls > c.calls {
			t.Errorf("%s %v: %d calls, %d processes, want %d calls", c.tool, c.args, counted.calls, counted.processes, c.calls)
		}
	}
}

// An edit of every line of a large file is one event.
func TestEventsOfAHugeEdit(t *testing.T) {
	old := strings.Repeat("a line\n", 500_000)
	text, _, splices, err := rewrite(old, editArgs{OldCode: some("line"), NewCode: some("row"), ReplaceAll: yes()})
	if err != nil || len(text) != 500_000*len("a row\n") {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if got := editEvents("f", old, splices); len(got) != 1 || got[0] != (env.Edit{File: "f", First: 1, Removed: 500_000, Added: 500_000}) {
		t.Errorf("%+v", got)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add("a\nb\n", "x\n", 1, 2, "b")
	f.Add("a\r\nb", "", 2, 2, "")
	f.Add("\uFEFFa\nb\r\n\n", "a\r\nb", 1, 1, "\n")
	f.Fuzz(func(t *testing.T, old, newCode string, start, end int, oldCode string) {
		for _, a := range []editArgs{
			{NewCode: &newCode, Start: &start, End: &end}, {NewCode: &newCode, OldCode: &oldCode}, {NewCode: &newCode},
			{NewCode: &newCode, InsertAfter: &start}, {NewCode: &newCode, OldCode: &oldCode, ReplaceAll: yes()},
		} {
			text, _, splices, err := rewrite(old, a)
			if err != nil || text == old {
				continue
			}
			oldLines, newLines := plainLines(strings.TrimPrefix(old, bom)), plainLines(strings.TrimPrefix(text, bom))
			shift, edited := 0, slices.Clone(oldLines)
			edits := editEvents("f", old, splices)
			for _, e := range edits {
				shift += e.Added - e.Removed
			}
			for _, e := range edits { // from the last to the first
				if e.First < 1 || e.Removed < 0 || e.Added < 0 || e.First-1+e.Removed > len(edited) {
					t.Fatalf("%q -> %q: %+v", old, text, edits)
				}
				shift -= e.Added - e.Removed // now the new line number minus the old one, at the start of e
				begin := e.First - 1 + shift
				edited = slices.Concat(edited[:e.First-1], newLines[begin:begin+e.Added], edited[e.First-1+e.Removed:])
			}
			if len(edits) > 0 && !slices.Equal(edited, newLines) {
				t.Fatalf("%q -> %q is not %+v", old, text, edits)
			}
		}
	})
}
