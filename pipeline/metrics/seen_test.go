package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// seenIn returns the lines that a step shows, as file:line text.
func seenIn(row schemas.StepRow) string {
	var b strings.Builder
	for _, l := range Read([]schemas.StepRow{row}, "").Readings[0].Lines {
		fmt.Fprintf(&b, "%s:%d %s\n", l.File, l.Number, strings.TrimSpace(l.Text))
	}
	return b.String()
}

// Each step shows the lines in the format of a tool of tracesmith or of another harness.
func TestLinesThatAStepShows(t *testing.T) {
	const two = "a.py:3 x = 1\na.py:4 y = 2\n"
	bash := func(command, output string) schemas.StepRow {
		return row("bash", map[string]any{"command": command}, output)
	}
	for name, c := range map[string]struct {
		row  schemas.StepRow
		want string
	}{
		"view":                {viewRow("a.py", 3, 4, "    3  x = 1\nB   4  y = 2\n"), two},
		"view of debug-gym":   {row("view", nil, "Viewing `a.py`, lines 3-4 of 9 total lines. B indicates breakpoint before a certain line of code.\n\n```\n     3 x = 1\nB    4 y = 2\n```\n\n"), two},
		"view, no numbers":    {row("view", nil, "Viewing `a.py`, lines 3-4 of 9 total lines.\n\n```\nx = 1\ny = 2\n```\n\n"), two},
		"grep of debug-gym":   {row("grep", nil, "Found 2 matches:\n\n=== a.py ===\n   3: x = 1\n   4: y = 2\n\n=== b.py ===\n   9: z\n"), two + "b.py:9 z\n"},
		"pdb":                 {pdbRow("c", "> /testbed/a.py(3)f()\n-> x = 1\nCurrent frame: a.py:4 in f\n   4    ->\ty = 2\n", 0), two},
		"pdb of debug-gym":    {row("pdb", map[string]any{"command": "n"}, "> /testbed/a.py(3)f()\n-> x = 1\nlist .\n  3  ->\tx = 1\n  4  \ty = 2"), "a.py:3 x = 1\n" + two},
		"editor":              {row("str_replace_editor", map[string]any{"command": "view", "path": "/testbed/a.py", "view_range": []int{3, 4}}, "Here's the result of running `cat -n` on /testbed/a.py:\n     3\tx = 1\n     4\ty = 2\n"), two},
		"editor of OpenHands": {row("str_replace_editor", map[string]any{"command": "view", "path": "/workspace/o__r__1/a.py"}, "Here's the result of running `cat -n` on /workspace/o__r__1/a.py:\n     3\tx = 1\n     4\ty = 2\n"), two},
		"window of SWE-agent": {bash("open a.py 3", "[File: /o__r/a.py (9 lines total)]\n(2 more lines above)\n3:x = 1\n4:y = 2\n(5 more lines below)"), two},
		"mini-SWE-agent":      {bash("cd /testbed && sed -n '3,4p' a.py", "<returncode>0</returncode>\n<output>\nx = 1\ny = 2\n</output>"), two},
		"nl":                  {bash("nl -ba a.py | sed -n '3,4p'", "     3\tx = 1\n     4\ty = 2\n"), two},
		"cat -n and tail":     {bash("cat -n ./a.py 2>/dev/null | tail -2", "     3\tx = 1\n     4\ty = 2\n"), two},
		"cat":                 {bash("cat a.py", "x = 1\ny = 2\n"), "a.py:1 x = 1\na.py:2 y = 2\n"},
		"cat and sed":         {bash("cat a.py | sed -n 3,4p", "x = 1\ny = 2\n"), two},
		"head":                {bash("cd sub; head -n 2 a.py", "x = 1\ny = 2\n"), "sub/a.py:1 x = 1\nsub/a.py:2 y = 2\n"},
		"OpenHands":           {row("execute_bash", map[string]any{"command": "cat a.py"}, "x = 1\n[The command completed with exit code 0.]\n[Current working directory: /workspace]"), "a.py:1 x = 1\n"},
		"grep -n":             {bash("grep -n '= ' a.py", "3:x = 1\n4:y = 2\n"), two},
		"grep -rn":            {bash("grep -rn '= [0-9]' . | head -5", "./a.py:3:x = 1\n./a.py-4-y = 2\n"), two},
		"tail":                {bash("tail -5 a.py", "x = 1\n"), ""},
		"two files":           {bash("cat a.py b.py", "x = 1\n"), ""},
		"two commands":        {bash("cat a.py; cat b.py", "x = 1\n"), ""},
		"written":             {bash("cat a.py > b.py", ""), ""},
		"missing":             {bash("cat a.py", "cat: a.py: No such file or directory\n"), ""},
		"listing":             {row("listdir", nil, "./\n  a.py\n"), ""},
		"edit":                {row("edit", map[string]any{"path": "a.py"}, "Replaced line 3.\n--- a/a.py\n+++ b/a.py\n@@ -3 +3 @@\n-x = 1\n+x = 2\n"), ""},
		"traceback":           {row("eval", nil, "Traceback (most recent call last):\n  File \"/testbed/a.py\", line 3, in f\n    x = 1\n  File \"<string>\", line 1, in g\nValueError\n"), "a.py:3 x = 1\n"},
		"pytest":              {row("eval", nil, "    def f():\n        x = 1\n>       y = 2\nE       ValueError\n\na.py:4: ValueError\n"), "a.py:4 y = 2\na.py:3 x = 1\na.py:2 def f():\n"},
	} {
		if diff := cmp.Diff(c.want, seenIn(c.row)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if row := row("look", map[string]any{"path": "a.py"}, "x = 1\n"); !Read([]schemas.StepRow{row}, "").Readings[0].IsOpaque {
		t.Error("the answer of an unknown tool counts as one without lines")
	}
	if s := seek([]schemas.StepRow{row("look", nil, "x = 1\n")}, cartEvidence(t)); s.Gold.Line != nil || s.Redundancy != nil {
		t.Errorf("an agent whose answers cannot be read has seen nothing: %+v", s.Gold.Line)
	}
	refused := row("view", nil, "Viewing `a.py`, lines 3-3 of 9 total lines.\n\n```\n     3 x = 1\n```\n")
	refused.ErrorClass = new(schemas.ErrNotExecuted)
	if seenIn(refused) != "" {
		t.Error("a call that was not executed shows lines")
	}
}

// The paths that a traceback or a frame names count as seen files; entries of a directory do not.
func TestFilesThatAStepNames(t *testing.T) {
	for name, c := range map[string]struct {
		row  schemas.StepRow
		want int
	}{
		"a frame without source": {row("eval", nil, `  File "/testbed/shop/cart.py", line 3, in f`), 1},
		"grep -rl":               {row("bash", map[string]any{"command": "grep -rl round ."}, "./shop/cart.py\n"), 1},
		"a listing":              {row("listdir", nil, "shop/\n  cart.py\n"), 0},
	} {
		if g := seek([]schemas.StepRow{c.row}, cartEvidence(t)).Gold; g.File.Found != c.want || g.Line.Found != 0 {
			t.Errorf("%s: %+v", name, g.File)
		}
	}
}

// A line that one answer shows twice counts once and is not redundant.
func TestLinesShownTwiceInOneStep(t *testing.T) {
	frame := "  File \"/testbed/shop/cart.py\", line 15, in total\n    return round(result)\n"
	s := seek([]schemas.StepRow{row("eval", nil, frame+"ValueError\n"+frame+"ValueError\n")}, cartEvidence(t))
	if *s.Redundancy != 0 || s.steps[0].shown != 1 || s.Gold.Line.Found != 1 {
		t.Errorf("redundancy %v, %+v", *s.Redundancy, s.steps[0])
	}
}

// Lines of an edited file are those of base that stand there now.
func TestLinesAfterEdits(t *testing.T) {
	m := newBaseMap("/testbed")
	apply := func(row schemas.StepRow) []edit {
		return m.apply(&Read([]schemas.StepRow{row}, "/testbed").Readings[0], &row)
	}
	check := func(what string, want map[int]int) {
		t.Helper()
		for n, base := range want {
			if got := m.line("a.py", n); got != base {
				t.Errorf("%s: line %d is line %d of base, want %d", what, n, got, base)
			}
		}
	}
	// Two hunks: line 3 becomes two lines, and line 10 is removed.
	edits := apply(row("edit", map[string]any{"path": "a.py"}, "Replaced.\n--- a/a.py\n+++ b/a.py\n@@ -2,3 +2,4 @@\n two\n-three\n+3\n+3b\n four\n@@ -9,3 +10,2 @@\n nine\n-ten\n eleven\n"))
	if diff := cmp.Diff([]edit{{"a.py", []int{3, 10}}}, edits, cmp.AllowUnexported(edit{})); diff != "" {
		t.Error(diff)
	}
	check("a diff", map[int]int{2: 2, 3: 0, 4: 0, 5: 4, 10: 9, 11: 11, 12: 12})
	// The next edit inserts before line 5, which is line 4 of base.
	edits = apply(row("rewrite", map[string]any{"path": "/testbed/a.py"}, "The file `a.py` has been updated successfully.\n\nDiff:\n\n--- original\n+++ current\n@@ -4,2 +4,3 @@\n 3b\n+new\n four\n"))
	if diff := cmp.Diff([]edit{{"a.py", []int{4}}}, edits, cmp.AllowUnexported(edit{})); diff != "" {
		t.Error(diff)
	}
	check("two diffs", map[int]int{4: 0, 5: 0, 6: 4, 11: 9, 12: 11})
	apply(row("str_replace_editor", map[string]any{"command": "insert", "path": "/testbed/a.py", "insert_line": 0, "new_str": "zero"}, "The file /testbed/a.py has been edited."))
	check("an insertion", map[int]int{1: 0, 2: 1, 7: 4})
	edits = apply(row("str_replace_editor", map[string]any{"command": "str_replace", "path": "/testbed/a.py", "old_str": "four\nfive\nsix", "new_str": "four\n5\n5b\nsix"},
		"The file /testbed/a.py has been edited. Here's the result of running `cat -n` on a snippet of /testbed/a.py:\n     3\ttwo\n     4\t3\n     5\t3b\n     6\tnew\n     7\tfour\n     8\t5\n     9\t5b\n    10\tsix\n"))
	if diff := cmp.Diff([]edit{{"a.py", []int{5}}}, edits, cmp.AllowUnexported(edit{})); diff != "" {
		t.Error(diff)
	}
	check("a replacement", map[int]int{7: 4, 8: 0, 9: 0, 10: 6})
	failed := row("edit", map[string]any{"path": "a.py"}, "@@ -1 +1 @@\n-a\n+b\n")
	failed.IsError = new(true)
	if apply(failed) != nil {
		t.Error("a failed edit changes the file")
	}
	if m.line("b.py", 7) != 7 {
		t.Error("an edit of one file moves the lines of another")
	}
	apply(row("bash", map[string]any{"command": "cd . && sed -i 's/a/b/' a.py"}, ""))
	check("sed -i", map[int]int{1: 0, 30: 0})
	if m.line("b.py", 7) != 7 {
		t.Error("sed -i of one file loses the lines of another")
	}
	apply(row("edit", map[string]any{"path": "c.py"}, "@@ -1 +1,2 @@\n one\n+two\n"))
	apply(row("bash", map[string]any{"command": "git -C /testbed checkout -- ."}, ""))
	if m.line("b.py", 7) != 7 || m.line("c.py", 7) != 0 {
		t.Error("git checkout loses the lines of a file without edits, or keeps those of an edited one")
	}
	for _, command := range []string{"git apply fix.patch", "cd src && patch -p1 < /tmp/fix.patch"} {
		m = newBaseMap("/testbed")
		apply(row("bash", map[string]any{"command": "git diff > fix.patch && cat fix.patch | head"}, ""))
		before := m.line("b.py", 7)
		apply(row("bash", map[string]any{"command": command}, ""))
		if before != 7 || m.line("b.py", 7) != 0 {
			t.Errorf("%s: line 7 of another file is line %d of base, and before it was line %d", command, m.line("b.py", 7), before)
		}
	}
}

// Lines that the agent wrote are not seen, and lines of a file that a command changed are unknown.
func TestWrittenLinesAreNotSeen(t *testing.T) {
	rows := []schemas.StepRow{
		row("bash", map[string]any{"command": "sed -i 's/round/int/' shop/cart.py"}, ""),
		viewRow("shop/cart.py", 1, 19, cartLines(1, 19, " %4d  %s\n")),
	}
	if l := seek(rows, cartEvidence(t)).Gold.Line; l.Seen != 0 || *l.Recall != 0 {
		t.Errorf("%+v", l)
	}
	rows = append(debugged()[6:7], viewRow("shop/cart.py", 15, 16, "   15          result = round(result, 2)\n   16          return result\n"))
	if l := seek(rows, cartEvidence(t)).Gold.Line; l.Seen != 0 {
		t.Errorf("%+v", l)
	}
}
