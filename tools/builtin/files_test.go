package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

var project = files{
	"a.py":              "import os\n\ndef f(x):\n    return x\n",
	"crlf.py":           "a = 1\r\nb = 2\r\n",
	"empty.py":          "",
	"open.py":           "no newline at the end",
	"bin.dat":           "\x00\x01\x02",
	"latin.py":          "# caf\xe9 total\n",
	"long.py":           numbered(12_000),
	"wide.txt":          strings.Repeat("w", 5000) + "\n",
	"cr.txt":            "one\rtwo\n",
	"src/pkg/mod.py":    "def total(items):\n    # sum of items\n    return sum(items)\n",
	"src/pkg/other.txt": "total: -1\n-rf total\n",
	"src/odd:na me.py":  "total = 2\n",
	"src/-dash.py":      "total = 3\n",
	"run.sh":            "#!/bin/sh\n",
	"link.py":           "-> src/pkg/mod.py",
	"dirlink":           "-> src/pkg",
	"out":               "-> /etc/passwd",
	"outdir":            "-> /etc",
	"broken":            "-> nowhere",
	".git/config":       "total\n",
	"__pycache__/x.pyc": "total\n",
	"a    b/c.txt":      "spaces\n",
}

func TestView(t *testing.T) {
	b := newBench(t, project)
	b.debugger.points = []schemas.Breakpoint{{File: "a.py", Line: 3, Enabled: true}, {File: "long.py", Line: 11_999}}
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "a.py"}, "a.py, lines 1-4 of 4 (B marks a breakpoint)\n    1  import os\n    2  \nB   3  def f(x):\n    4      return x\n"},
		{args{"path": "/testbed/a.py", "start": 2, "end": 2}, "a.py, lines 2-2 of 4\n    2  \n"},
		{args{"path": "./src/../a.py", "start": 4, "end": 99}, "a.py, lines 4-4 of 4\n    4      return x\n"},
		{args{"path": "a.py", "end": 1, "line_numbers": false}, "a.py, lines 1-1 of 4\nimport os\n"},
		{args{"path": "crlf.py"}, "crlf.py, lines 1-2 of 2\n    1  a = 1\n    2  b = 2\n"},
		{args{"path": "empty.py"}, "empty.py is an empty file."},
		{args{"path": "open.py"}, "open.py, lines 1-1 of 1\n    1  no newline at the end\n"},
		{args{"path": "latin.py"}, "latin.py, lines 1-1 of 1\n    1  # caf\uFFFD total\n"},
		{args{"path": "cr.txt"}, "cr.txt, lines 1-1 of 1\n    1  one\\rtwo\n"},
		{args{"path": "wide.txt"}, "wide.txt, lines 1-1 of 1\n    1  " + strings.Repeat("w", 2000) + "... [3000 bytes more]\n"},
		{args{"path": "long.py", "start": 11999}, "long.py, lines 11999-12000 of 12000 (B marks a breakpoint)\nB11999  line 11999\n 12000  line 12000\n"},
		{args{"path": "link.py", "start": 1, "end": 1}, "src/pkg/mod.py, lines 1-1 of 3\n    1  def total(items):\n"},
		{args{"path": "dirlink/mod.py", "start": 1, "end": 1}, "src/pkg/mod.py, lines 1-1 of 3\n    1  def total(items):\n"},
	} {
		if d := cmp.Diff(c.want, b.ok("view", c.args)); d != "" {
			t.Errorf("%v (-want +got)\n%s", c.args, d)
		}
	}
	long := b.call("view", args{"path": "long.py"})
	if long.Truncated || len(long.Text) > tools.MaxText || !strings.Contains(long.Text, "are not shown; view them with start=") ||
		!strings.HasPrefix(long.Targets[0], "long.py:1-") {
		t.Errorf("long file: truncated %v, %d bytes, %v", long.Truncated, len(long.Text), long.Targets)
	}

	b.refused("view", args{"path": "modd.py"}, "does not exist", "Did you mean src/pkg/mod.py?")
	b.refused("view", args{"path": "pkg/mod.py"}, "Did you mean src/pkg/mod.py?")
	b.refused("view", args{"path": "zzzzzzzz"}, "listdir")
	b.refused("view", args{"path": "a.py/x"}, "does not exist")
	b.refused("view", args{"path": "src"}, "is a directory", `listdir`)
	b.refused("view", args{"path": " "}, "empty")
	b.refused("view", args{"path": "../etc/passwd"}, "outside the workspace /testbed", "bash")
	b.refused("view", args{"path": "/testbedx/a"}, "outside")
	b.refused("view", args{"path": "out"}, "outside")
	b.refused("view", args{"path": "outdir/passwd"}, "outside")
	b.refused("view", args{"path": "broken"}, "symbolic link to nowhere")
	b.refused("view", args{"path": "bin.dat"}, "binary file (3 bytes)", "xxd")
	for _, command := range [][]string{{"mkfifo", "pipe"}, {"cp", "a.py", "locked"}, {"chmod", "000", "locked"}} {
		if r, err := b.Sandbox.Run(t.Context(), env.Command{Args: command}); err != nil || r.ExitCode != 0 {
			t.Fatalf("%v: %+v, %v", command, r, err)
		}
	}
	b.refused("view", args{"path": "locked"}, "view did nothing", "permission denied")
	b.refused("view", args{"path": "pipe"}, "view did nothing", "not a regular file")
	b.refused("view", args{"path": "a.py", "start": 5}, "beyond the end", "4 lines")
	b.refused("view", args{"path": "a.py", "start": 3, "end": 2}, "start=3", "end=2")
	b.refused("view", args{"path": "a.py", "start": 0}, "counted from 1")
	b.refused("view", args{"path": "a.py", "end": -1}, "counted from 1")
}

func TestGrep(t *testing.T) {
	b := newBench(t, project)
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": `def \w+\(`}, "2 matches in 2 files:\n\na.py\n    3: def f(x):\n\nsrc/pkg/mod.py\n    1: def total(items):\n"},
		{args{"pattern": "total", "include": "*.py"}, "4 matches in 4 files:\n\nlatin.py\n    1: # caf\uFFFD total\n\nsrc/-dash.py\n    1: total = 3\n\nsrc/odd:na me.py\n    1: total = 2\n\nsrc/pkg/mod.py\n    1: def total(items):\n"},
		{args{"pattern": "total", "include": "**/*.{txt,md}"}, "2 matches in 1 file:\n\nsrc/pkg/other.txt\n    1: total: -1\n    2: -rf total\n"},
		{args{"pattern": "-rf", "path": "src"}, "1 match in 1 file:\n\nsrc/pkg/other.txt\n    2: -rf total\n"},
		{args{"pattern": "total", "path": "src/-dash.py"}, "1 match in 1 file:\n\nsrc/-dash.py\n    1: total = 3\n"},
		{args{"pattern": "sum(", "fixed": true, "path": nil, "max_results": nil}, "1 match in 1 file:\n\nsrc/pkg/mod.py\n    3:     return sum(items)\n"},
		{args{"pattern": "IMPORT", "ignore_case": true}, "1 match in 1 file:\n\na.py\n    1: import os\n"},
		{args{"pattern": `^line \d{5}$`, "max_results": 2}, "The first 2 of 2001 matches in 1 file:\n\nlong.py\n10000: line 10000\n10001: line 10001\n"},
		{args{"pattern": `^line 1199[89]$`, "max_results": 2}, "2 matches in 1 file:\n\nlong.py\n11998: line 11998\n11999: line 11999\n"},
		{args{"pattern": "nosuchthing", "path": "src"}, `No line matches "nosuchthing" in src.`},
		{args{"pattern": "^w+$"}, "1 match in 1 file:\n\nwide.txt\n    1: " + strings.Repeat("w", 300) + "... [4700 bytes more]\n"},
		{args{"pattern": "a = 1$", "path": "crlf.py"}, `No line matches "a = 1$" in crlf.py.`},
	} {
		if d := cmp.Diff(c.want, b.ok("grep", c.args)); d != "" {
			t.Errorf("%v (-want +got)\n%s", c.args, d)
		}
	}
	b.refused("grep", args{"pattern": ""}, "empty")
	b.refused("grep", args{"pattern": "a\nb"}, "more than one line")
	b.refused("grep", args{"pattern": "[z-a]"}, "did not accept", "fixed")
	b.refused("grep", args{"pattern": "x", "path": "src/pkg/*.py"}, `path "src/pkg" with include "*.py"`)
	b.refused("grep", args{"pattern": "x", "include": "src/*.py"}, `path "src" with include "*.py"`)
	b.refused("grep", args{"pattern": "x", "path": "srcc"}, "Did you mean src?")
	b.refused("grep", args{"pattern": "x", "path": ".."}, "outside")
	b.refused("grep", args{"pattern": "x", "max_results": 0}, "1 to 1000")
}

func TestListdir(t *testing.T) {
	b := newBench(t, project)
	b.sh(`mkdir hollow; touch $'new\nline'`)
	want := "/testbed/\n  .git/\n  __pycache__/\n  a    b/\n  a.py\n  bin.dat\n  broken -> nowhere\n  cr.txt\n  crlf.py\n" +
		"  dirlink -> src/pkg\n  empty.py\n  hollow/\n  latin.py\n  link.py -> src/pkg/mod.py\n  long.py\n  \"new\\nline\"\n  open.py\n" +
		"  out -> /etc/passwd\n  outdir -> /etc\n  run.sh*\n  src/\n  wide.txt\n"
	if d := cmp.Diff(want, b.ok("listdir", args{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	want = "/testbed/src/\n  -dash.py\n  odd:na me.py\n  pkg/\n    mod.py\n    other.txt\n"
	for _, depth := range []any{2, "2", 99} {
		if d := cmp.Diff(want, b.ok("listdir", args{"path": "src/", "depth": depth})); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	if got := b.ok("listdir", args{"path": "hollow"}); got != "/testbed/hollow/\n  (empty)\n" {
		t.Errorf("empty directory: %q", got)
	}
	if got := b.ok("listdir", args{"depth": 20}); strings.Contains(got, "config") || strings.Contains(got, "x.pyc") {
		t.Errorf("contents of .git or __pycache__ are listed:\n%s", got)
	}
	b.refused("listdir", args{"depth": 0}, "1 to 20")
	b.refused("listdir", args{"path": "a.py"}, "is a file", "view")
	b.refused("listdir", args{"path": "sources"}, "does not exist")
	b.refused("listdir", args{"path": "outdir"}, "outside")
	b.sh("mkdir many; cd many; touch $(seq 1200)")
	if got := b.ok("listdir", args{"path": "many"}); !strings.HasSuffix(got, "[and 200 more; list a subdirectory or a smaller depth]\n") {
		t.Errorf("a large directory ends in %q", got[len(got)-80:])
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte("./a.py\x0012:text\n./b\x00x:\n"), 3)
	f.Add([]byte("d\x00755\x00a/b\x00\x00find: x\nf\x00644\x00c\x00\x00"), 0)
	f.Fuzz(func(t *testing.T, out []byte, head int) {
		res := resultOf(out, head)
		found := parseGrep(res)
		o := found.observation(3, false)
		if shown := strings.Count(o.Text, ": "); found.count > 3 && shown == 0 {
			t.Errorf("nothing shown of %d matches", found.count)
		}
		for _, e := range parseFind(res) {
			_ = e.label()
		}
	})
}
