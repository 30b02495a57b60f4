package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// greps checks the observations of calls to grep.
func (b *toolSession) greps(list []grepCase) {
	b.t.Helper()
	for _, c := range list {
		if d := cmp.Diff(c.want, b.ok("grep", c.args)); d != "" {
			b.t.Errorf("%v (-want +got)\n%s", c.args, d)
		}
	}
}

type grepCase struct {
	args args
	want string
}

func TestB16GrepArguments(t *testing.T) {
	b := newToolSession(t, project)
	b.greps([]grepCase{
		{args{"pattern": "sum(", "fixed": true, "path": nil, "max_results": nil, "include": nil, "exclude": nil, "context": nil, "ignore_case": nil},
			"1 match in 1 file:\n\nsrc/pkg/mod.py\n    3:     return sum(items)\n"},
		{args{"pattern": "IMPORT", "ignore_case": true}, "1 match in 1 file:\n\na.py\n    1: import os\n"},
		{args{"pattern": "IMPORT", "ignore_case": "false"}, `No line matches "IMPORT" in the workspace.`},
		{args{"pattern": "(?i)IMPORT"}, "1 match in 1 file:\n\na.py\n    1: import os\n"},
		{args{"pattern": "RETURN SUM(", "fixed": true, "ignore_case": true}, "1 match in 1 file:\n\nsrc/pkg/mod.py\n    3:     return sum(items)\n"},
		{args{"pattern": "total", "exclude": "pkg", "include": "*.py"}, "3 matches in 3 files:\n\nlatin.py\n    1: # caf\uFFFD total\n\nsrc/-dash.py\n    1: total = 3\n\nsrc/odd:na me.py\n    1: total = 2\n"},
		{args{"pattern": "def", "context": "1"}, "2 matches in 2 files:\n\na.py\n    2- \n    3: def f(x):\n    4-     return x\n\nsrc/pkg/mod.py\n    1: def total(items):\n    2-     # sum of items\n"},
		{args{"pattern": "[15]$", "path": "long.py", "context": 1, "max_results": 2}, "The first 2 of 2400 matches in 1 file:\n\nlong.py\n    1: line 1\n    2- line 2\n    --\n    4- line 4\n    5: line 5\n    6- line 6\n"},
	})
	b.refused("grep", args{"pattern": "x", "max_results": 0}, "1 to 1000")
	b.refused("grep", args{"pattern": "x", "context": -1}, "0 to 10")
}

func TestB17GrepLayout(t *testing.T) {
	b := newToolSession(t, project)
	b.greps([]grepCase{
		{args{"pattern": `def \w+\(`}, "2 matches in 2 files:\n\na.py\n    3: def f(x):\n\nsrc/pkg/mod.py\n    1: def total(items):\n"},
		{args{"pattern": "total", "path": "src/-dash.py"}, "1 match in 1 file:\n\nsrc/-dash.py\n    1: total = 3\n"},
		{args{"pattern": "total", "path": "dirlink"}, "3 matches in 2 files:\n\nsrc/pkg/mod.py\n    1: def total(items):\n\nsrc/pkg/other.txt\n    1: total: -1\n    2: -rf total\n"},
		{args{"pattern": `^line \d{5}$`, "max_results": 2}, "The first 2 of 2001 matches in 1 file:\n\nlong.py\n10000: line 10000\n10001: line 10001\n"},
		{args{"pattern": "^w+$"}, "1 match in 1 file:\n\nwide.txt\n    1: " + strings.Repeat("w", 300) + "... [4700 bytes more]\n"},
		{args{"pattern": "a = 1$", "path": "crlf.py"}, "1 match in 1 file:\n\ncrlf.py\n    1: a = 1\n"},
		{args{"pattern": "end$", "path": "open.py"}, "1 match in 1 file:\n\nopen.py\n    1: no newline at the end\n"},
		{args{"pattern": "one", "path": "cr.txt"}, "1 match in 1 file:\n\ncr.txt\n    1: one\\rtwo\n"},
	})
	o := b.call("grep", args{"pattern": "total", "include": "*.txt"})
	if d := cmp.Diff([]string{"src/pkg/other.txt"}, o.Targets); d != "" {
		t.Error(d)
	}
}

func TestB18GrepMistakes(t *testing.T) {
	b := newToolSession(t, project)
	b.greps([]grepCase{
		{args{"pattern": "nosuchthing", "path": "src"}, `No line matches "nosuchthing" in src.`},
		{args{"pattern": "x", "path": "bin.dat"}, `No line matches "x" in bin.dat. grep found only binary files there, and does not search them.`},
		{args{"pattern": "x", "include": "*.rs"}, `No line matches "x" in the workspace (only *.rs). There are no files to search: check path, include and exclude with listdir.`},
		{args{"pattern": `foo\|bar`, "path": "src"}, "No line matches \"foo\\\\|bar\" in src. In this syntax, | ( ) { } + are operators without a backslash and literal characters with one."},
		{args{"pattern": `foo\n`, "path": "src"}, "No line matches \"foo\\\\n\" in src. grep matches one line at a time, so \\n matches nothing."},
	})
	for _, c := range []struct {
		args args
		says []string
	}{
		{args{"pattern": ""}, []string{"empty"}},
		{args{"pattern": "a\nb"}, []string{"contains a newline"}},
		{args{"pattern": "[z-a]"}, []string{"cannot read the pattern", "invalid character class range: z-a", "fixed"}},
		{args{"pattern": "f("}, []string{"missing closing )", "fixed"}},
		{args{"pattern": "*x"}, []string{"missing argument to repetition", "fixed"}},
		{args{"pattern": "x", "path": "srcc"}, []string{"Did you mean src?"}},
		{args{"pattern": "x", "path": ".."}, []string{"outside"}},
		{args{"pattern": "x", "path": "out"}, []string{"outside"}},
		{args{"pattern": "x", "include": "[a"}, []string{"rejected the search", "unclosed bracket"}},
		{args{"pattern": "x", "include": strings.Repeat("{a,b}", 9)}, []string{"rejected the search", "alternatives"}},
		{args{"pattern": strings.Repeat("x", 3000)}, []string{"3000 bytes, more than 2000"}},
		{args{"pattern": `([a-z]{1000}){1}\pL{900}\d{900}`}, []string{"repeats too much"}},
	} {
		b.refused("grep", c.args, c.says...)
	}
	if o := b.call("grep", args{"pattern": "a\x00b"}); !strings.Contains(o.Text, `"pattern" must not contain NUL`) {
		t.Errorf("NUL: %+v", o)
	}
	b.sh("mkfifo pipe")
	b.refused("grep", args{"pattern": "x", "path": "pipe"}, "not a regular file")
}

// The message names the feature that RE2 lacks and what to use instead.
func TestGrepOfPerlPatterns(t *testing.T) {
	b := newToolSession(t, files{"a": "x"})
	for pattern, says := range map[string]string{
		`foo(?=bar)`: "The pattern uses (?=: this syntax (RE2) has no lookahead. Search with a simpler pattern and pick from the matches, or use bash: grep -rnP.",
		`foo(?!bar)`: "has no negative lookahead", `(?<=a)b`: "has no lookbehind", `(?<!a)b`: "has no lookbehind", `(a)\1`: `The pattern uses \1: this syntax (RE2) has no backreferences`,
		`(?>a)b`: "has no atomic groups", `a++`: "write + alone", `a\Z`: "write $", `\h+`: `write [ \t]`, `a\Kb`: `has no \K`, `(?P<n>a)(?P=n)`: "has no backreferences",
	} {
		b.refused("grep", args{"pattern": pattern}, says)
	}
	b.greps([]grepCase{{args{"pattern": `^(?P<n>\w)\b$`}, "1 match in 1 file:\n\na\n    1: x\n"}})
}

// This test proves row WC13 of docs/internals/parity.md.
func TestWC13GrepTakesWhatItIsGiven(t *testing.T) {
	b := newToolSession(t, files{
		"src/a.py": "total = 1\n", "src/deep/er/b.py": "total = 2\n", "src/deep/c.txt": "total = 3\n", "lib/d.py": "total = 4\n# see __pycache__/x and .git total\n",
		"odd:12:name.py": "total = 5\n", "new\nline.py": "total = 6\n", "bad\xff.py": "total = 7\n", "-rf": "total = 8\n--help\n", "ünï.py": "total = 9\n",
		"__pycache__/m.py": "total\n", "a/node_modules/n.py": "total\n", ".git/x": "total\n", ".pytest_cache/v": "total\n", ".hidden.py": "total = 10\n",
		"[lit].py": "total = 11\n",
	})
	for want, a := range map[string]args{
		"src/a.py src/deep/er/b.py":       {"path": "src/**/*.py"},
		"src/deep/c.txt src/deep/er/b.py": {"path": "src/d*"},
		"src/deep/er/b.py":                {"path": "s?c/deep/**/[a-c].py", "include": "*.py"},
		"lib/d.py src/a.py":               {"path": "/testbed/{lib,src}/*.py"},
		"src/deep/c.txt":                  {"include": "src/**/*.txt"},
		"src/a.py":                        {"path": "src", "include": "src/*.py"},
		"src/a.py ":                       {"include": "/testbed/src/*.py", "path": "src"},
		"[lit].py":                        {"path": "[lit].py"},
		"-rf":                             {"path": "-rf"},
		"-rf .hidden.py [lit].py \"bad\\xff.py\" lib/d.py \"new\\nline.py\" odd:12:name.py src/a.py src/deep/c.txt src/deep/er/b.py ünï.py": {},
		".hidden.py": {"include": ".*"},
		"src/a.py src/deep/c.txt src/deep/er/b.py": {"path": "src/"},
	} {
		a["pattern"] = "total"
		var found []string
		for line := range strings.SplitSeq(b.ok("grep", a), "\n") {
			if line != "" && !strings.HasPrefix(line, " ") && !strings.HasSuffix(line, ":") {
				found = append(found, line)
			}
		}
		if got := strings.Join(found, " "); got != strings.TrimSpace(want) {
			t.Errorf("%v\n got %s\nwant %s", a, got, want)
		}
	}
	b.greps([]grepCase{
		{args{"pattern": "--help"}, "1 match in 1 file:\n\n-rf\n    2: --help\n"},
		{args{"pattern": "-e|-rf", "path": "-rf"}, `No line matches "-e|-rf" in -rf.`},
		{args{"pattern": "__pycache__"}, "1 match in 1 file:\n\nlib/d.py\n    2: # see __pycache__/x and .git total\n"},
		{args{"pattern": "= 5", "fixed": true}, "1 match in 1 file:\n\nodd:12:name.py\n    1: total = 5\n"},
		{args{"pattern": "total", "path": ".git"}, "1 match in 1 file:\n\n.git/x\n    1: total\n"},
	})
	// The header says "first" only if there are more matches than max_results.
	for most, want := range map[int]string{1: "The first 1 of 2 matches in 1 file:", 2: "2 matches in 1 file:", 3: "2 matches in 1 file:"} {
		if got := b.ok("grep", args{"pattern": ".", "path": "-rf", "max_results": most}); !strings.HasPrefix(got, want) {
			t.Errorf("at most %d: %q", most, got)
		}
	}
	b.sh("chmod 000 src/a.py")
	if got := b.ok("grep", args{"pattern": "total", "path": "src"}); !strings.HasSuffix(got, "\n[1 file could not be read]\n") || !strings.HasPrefix(got, "2 matches in 2 files:") {
		t.Errorf("an unreadable file: %q", got)
	}
}

// A long line is shown around its match.
func TestGrepOfLongLines(t *testing.T) {
	b := newToolSession(t, files{"min.js": strings.Repeat("x", 20_000) + "needle" + strings.Repeat("y", 10_000) + "\n", "many": strings.Repeat(strings.Repeat("z", 290)+"\n", 900)})
	want := fmt.Sprintf("1 match in 1 file:\n\nmin.js\n    1: [19925 bytes before] ...%sneedle%s... [9781 bytes more]\n", strings.Repeat("x", 75), strings.Repeat("y", 219))
	b.greps([]grepCase{{args{"pattern": "need"}, want}})
	if o := b.call("grep", args{"pattern": "z", "max_results": 1000}); o.Truncated || !strings.HasPrefix(o.Text, "The first 169 of 900 matches in 1 file:") {
		t.Errorf("truncated %v, %.80q", o.Truncated, o.Text)
	}
}

// grep searches a huge tree within its limits and always in the same order.
func TestGrepOfAHugeTree(t *testing.T) {
	b := newToolSession(t, files{})
	b.sh(`python3 - <<'E'
import os
for d in range(200):
    os.mkdir(f"d{d}")
    for f in range(150):
        with open(f"d{d}/f{f}.py", "w") as out:
            out.write("nothing\n" if f else "needle\n")
E`)
	got := b.ok("grep", args{"pattern": "needle|absent", "max_results": 2})
	if got != "The first 2 of 200 matches in 200 files:\n\nd0/f0.py\n    1: needle\n\nd1/f0.py\n    1: needle\n" {
		t.Errorf("got %q", got)
	}
	b.CommandTimeout = 1
	o := b.call("grep", args{"pattern": "absent"})
	if !o.TimedOut || !strings.Contains(o.Text, "The search stopped after") || !strings.Contains(o.Text, "Narrow it") {
		t.Errorf("without time: %+v", o)
	}
}

func TestGrepIgnoreSetting(t *testing.T) {
	b := newToolSessionWith(t, files{"build/x": "total", ".git/x": "total"}, settings{"grep": {"ignore": []string{"bui*"}}})
	b.greps([]grepCase{{args{"pattern": "total"}, "1 match in 1 file:\n\n.git/x\n    1: total\n"}})
	b = newToolSessionWith(t, files{"build/x": "total", ".git/x": "total"}, settings{"grep": {"ignore": []string{}}})
	if got := b.ok("grep", args{"pattern": "total"}); !strings.HasPrefix(got, "2 matches in 2 files:") {
		t.Errorf("without ignores: %q", got)
	}
}
