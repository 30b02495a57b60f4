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

// views checks the observations of calls to view.
func (b *toolSession) views(list map[string]args) {
	b.t.Helper()
	for want, a := range list {
		if d := cmp.Diff(want, b.ok("view", a)); d != "" {
			b.t.Errorf("%v (-want +got)\n%s", a, d)
		}
	}
}

func TestB7ViewArguments(t *testing.T) {
	b := newToolSession(t, project)
	const two = "a.py, lines 2-3 of 4\n    2  \n    3  def f(x):\n"
	for _, a := range []args{
		{"path": "a.py", "start": 2, "end": 3}, {"path": "a.py", "start": "2", "end": "3"}, {"path": "/testbed/a.py", "start": 2.0, "end": 3.0},
		{"path": "./src/../a.py", "start": 2, "end": 3, "line_numbers": nil},
	} {
		b.views(map[string]args{two: a})
	}
	b.views(map[string]args{
		"a.py, lines 2-3 of 4\n\ndef f(x):\n":         {"path": "a.py", "start": 2, "end": 3, "line_numbers": false},
		"a.py, lines 4-4 of 4\n    4      return x\n": {"path": "a.py", "start": 4, "end": nil},
		"a.py, lines 1-1 of 4\n    1  import os\n":    {"path": "a.py", "start": nil, "end": 1},
	})
	if o := b.call("view", args{"path": "a.py", "start": 2.5}); o.ErrorClass != schemas.ErrBadArguments {
		t.Errorf("a fractional line number: %+v", o)
	}
}

// The header gives path, range and total. It mentions breakpoints if the range has any.
func TestB8ViewLayout(t *testing.T) {
	b := newToolSession(t, project)
	b.debugger.points = []schemas.Breakpoint{{File: "a.py", Line: 3, Enabled: true}, {File: "long.py", Line: 11_999}}
	b.views(map[string]args{
		"a.py, lines 1-4 of 4 (B marks a breakpoint)\n    1  import os\n    2  \nB   3  def f(x):\n    4      return x\n": {"path": "a.py"},
		"a.py, lines 1-2 of 4\n    1  import os\n    2  \n":                                                               {"path": "a.py", "end": 2},
		"crlf.py, lines 1-2 of 2 (lines end in CRLF)\n    1  a = 1\n    2  b = 2\n":                                       {"path": "crlf.py"},
		"mixed.txt, lines 1-3 of 3\n    1  a\\r\n    2  b\n    3  c\\r\n":                                                 {"path": "mixed.txt"},
		"open.py, lines 1-1 of 1\n    1  no newline at the end\n":                                                         {"path": "open.py"},
		"cr.txt, lines 1-1 of 1\n    1  one\\rtwo\n":                                                                      {"path": "cr.txt"},
		"long.py, lines 11999-12000 of 12000 (B marks a breakpoint)\nB11999  line 11999\n 12000  line 12000\n":            {"path": "long.py", "start": 11999},
		"src/pkg/mod.py, lines 1-1 of 3\n    1  def total(items):\n":                                                      {"path": "link.py", "end": 1},
		"src/pkg/mod.py, lines 3-3 of 3\n    3      return sum(items)\n":                                                  {"path": "dirlink/mod.py", "start": 3},
	})
	b.debugger.points = nil
	b.views(map[string]args{"a.py, lines 3-3 of 4\n    3  def f(x):\n": {"path": "a.py", "start": 3, "end": 3}})
}

// The column is four wide and grows with the last number shown.
func TestB9ViewLineNumberWidth(t *testing.T) {
	b := newToolSession(t, files{"n.txt": numbered(100_000)})
	b.views(map[string]args{
		"n.txt, lines 1-1 of 100000\n    1  line 1\n":                                      {"path": "n.txt", "end": 1},
		"n.txt, lines 9999-10000 of 100000\n  9999  line 9999\n 10000  line 10000\n":       {"path": "n.txt", "start": 9999, "end": 10000},
		"n.txt, lines 99999-100000 of 100000\n  99999  line 99999\n 100000  line 100000\n": {"path": "n.txt", "start": 99999},
	})
}

func TestB10ViewMistakes(t *testing.T) {
	b := newToolSession(t, project)
	b.views(map[string]args{
		"empty.py is an empty file.":                  {"path": "empty.py", "start": 3, "end": 9},
		"a.py, lines 4-4 of 4\n    4      return x\n": {"path": "a.py", "start": 4, "end": 99},
	})
	for _, c := range []struct {
		args args
		says []string
	}{
		{args{"path": " "}, []string{"empty"}},
		{args{"path": "modd.py"}, []string{"does not exist", "Did you mean src/pkg/mod.py?"}},
		{args{"path": "pkg/mod.py"}, []string{"Did you mean src/pkg/mod.py?"}},
		{args{"path": "zzzzzzzz"}, []string{"listdir"}},
		{args{"path": "a.py/x"}, []string{"does not exist"}},
		{args{"path": "src"}, []string{"is a directory", `listdir`}},
		{args{"path": "../etc/passwd"}, []string{"outside the workspace /testbed", "bash"}},
		{args{"path": "broken"}, []string{"symbolic link to nowhere"}},
		{args{"path": "bin.dat"}, []string{"binary file (3 bytes)", "xxd"}},
		{args{"path": "a.py", "start": 5}, []string{"beyond the end", "4 lines"}},
		{args{"path": "a.py", "start": 3, "end": 2}, []string{"start=3", "end=2"}},
		{args{"path": "a.py", "start": 0}, []string{"start at 1", "4 lines"}},
		{args{"path": "a.py", "start": -5, "end": -1}, []string{"start at 1"}},
		{args{"path": "a.py", "end": -1}, []string{"start at 1"}},
	} {
		b.refused("view", c.args, c.says...)
	}
	if o := b.call("view", args{"path": "a.py", "start": "two"}); o.ErrorClass != schemas.ErrBadArguments || !strings.Contains(o.Text, `"start" must be an integer`) {
		t.Errorf("%+v", o)
	}
}

// Special files are refused at once, even those on which a read would block.
func TestViewOfSpecialFiles(t *testing.T) {
	b := newToolSession(t, project)
	b.sh("mkfifo pipe; cp a.py locked; chmod 000 locked; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
	b.refused("view", args{"path": "locked"}, "view did nothing", "permission denied")
	b.refused("view", args{"path": "pipe"}, "view did nothing", "not a regular file")
	b.refused("view", args{"path": "sock"}, "view did nothing")
}

// This test proves row WC11 of docs/internals/parity.md.
func TestWC11BytesThatAreNotUTF8AreShown(t *testing.T) {
	b := newToolSession(t, files{"latin.py": "# caf\xe9 total\nx = 1\n"})
	b.views(map[string]args{"latin.py, lines 1-2 of 2\n    1  # caf\uFFFD total\n    2  x = 1\n": {"path": "latin.py"}})
	if got := b.sh(`printf 'ok \xff\xfe\nnext\n'`); got != "ok \uFFFD\nnext\n" {
		t.Errorf("bash: %q", got)
	}
	b.report = env.EvalReport{Passed: true, Output: "bad \xff byte\nOK\n"}
	if got := b.ok("eval", nil); !strings.Contains(got, "bad \uFFFD byte\nOK\n") {
		t.Errorf("eval: %q", got)
	}
	if got := b.ok("grep", args{"pattern": "caf."}); !strings.Contains(got, "# caf\uFFFD total") {
		t.Errorf("grep: %q", got)
	}
}

// Control characters of a file are shown as escapes.
func TestViewOfControlCharacters(t *testing.T) {
	b := newToolSession(t, files{"a.txt": "\x0c\n\x1b[31mred\x1b[0m\ttab\nold\rnew\nNUL" + strings.Repeat(" ", 9000) + "\n\x00\u0085\x7f\n"})
	b.views(map[string]args{
		"a.txt, lines 1-3 of 5\n    1  \\f\n    2  \\x1b[31mred\\x1b[0m\ttab\n    3  old\\rnew\n": {"path": "a.txt", "end": 3},
		"a.txt, lines 5-5 of 5\n    5  \\x00\\u0085\\x7f\n":                                       {"path": "a.txt", "start": 5},
	})
	if got := b.ok("grep", args{"pattern": "red"}); got != "1 match in 1 file:\n\na.txt\n    2: \\x1b[31mred\\x1b[0m\ttab\n" {
		t.Errorf("grep: %q", got)
	}
	got := b.ok("edit", args{"path": "a.txt", "old_code": "new", "new_code": "now"})
	if !strings.Contains(got, "\n \\x1b[31mred\\x1b[0m\ttab\n-old\\rnew\n+old\\rnow\n NUL") || !strings.Contains(got, "... [7004 bytes more]\n") {
		t.Errorf("edit: %q", got)
	}
}

// This test proves row WC14 of docs/internals/parity.md.
func TestWC14OneBlankLineIsShown(t *testing.T) {
	b := newToolSession(t, files{"a.py": "x\n\ny\n", "blank": "\n"})
	b.views(map[string]args{
		"a.py, lines 2-2 of 3\n    2  \n":  {"path": "a.py", "start": 2, "end": 2},
		"blank, lines 1-1 of 1\n    1  \n": {"path": "blank"},
	})
}

// view reads only the range of a huge file and shows only the beginning of a huge line. It
// counts or names the rest.
func TestViewOfHugeFiles(t *testing.T) {
	b := newToolSession(t, files{"wide.txt": strings.Repeat("é", 5<<20) + "\nend\n", "long.py": numbered(12_000)})
	got := b.ok("view", args{"path": "wide.txt"})
	if want := fmt.Sprintf("wide.txt, lines 1-2 of 2\n    1  %s... [%d bytes more]\n    2  end\n", strings.Repeat("é", 1000), 10<<20-2000); got != want {
		t.Errorf("got %d bytes: %.80q", len(got), got)
	}
	long := b.call("view", args{"path": "long.py"})
	if long.Truncated || len(long.Text) > tools.MaxText || !strings.Contains(long.Text, "-12000 are not shown; view them with start=") ||
		!strings.HasPrefix(long.Targets[0], "long.py:1-") {
		t.Errorf("truncated %v, %d bytes, %v", long.Truncated, len(long.Text), long.Targets)
	}
	b.sh(`for i in $(seq 2000); do echo "line $i"; done >huge.log; truncate -s 900M huge.log`)
	counted := &countingSandbox{Sandbox: b.Sandbox}
	b.Sandbox = counted
	got = b.ok("view", args{"path": "huge.log", "start": 1500, "end": 1501})
	if got != "huge.log, lines 1500-1501 of a file of 943718400 bytes\n 1500  line 1500\n 1501  line 1501\n" {
		t.Errorf("got %q", got)
	}
	if counted.read > 1<<20 || counted.moved > 100 || counted.processes != 0 {
		t.Errorf("viewing two lines of a file of 900 MiB: %+v", counted)
	}
	b.refused("view", args{"path": "huge.log", "start": -1}, "has more than 1 line.")
}

func TestViewMaxLinesSetting(t *testing.T) {
	b := newToolSessionWith(t, files{"n.txt": numbered(10)}, settings{"view": {"max_lines": 2}})
	b.views(map[string]args{
		"n.txt, lines 1-2 of 10\n    1  line 1\n    2  line 2\n[lines 3-10 are not shown; view them with start=3]\n": {"path": "n.txt"},
		"n.txt, lines 4-5 of 10\n    4  line 4\n    5  line 5\n[lines 6-7 are not shown; view them with start=6]\n":  {"path": "n.txt", "start": 4, "end": 7},
		"n.txt, lines 10-10 of 10\n   10  line 10\n":                                                                 {"path": "n.txt", "start": 10, "end": 70},
	})
}
