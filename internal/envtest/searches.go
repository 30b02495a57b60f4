package envtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
)

var searchChecks = []check{
	{name: "walk a tree", fn: walkTree},
	{name: "walk within bounds", fn: walkBounds},
	{name: "search lines", fn: searchLines},
	{name: "search globs", fn: searchGlobs},
	{name: "search within bounds", fn: searchBounds},
	{name: "search a range of lines", fn: searchRange},
	{name: "refused searches", fn: searchRefused},
}

const odd = "odd \xff\n:name"

// tree creates the files for walks and searches.
func (f *fixture) tree(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"a2.txt": "alpha\nbeta\n", "a10.txt": "Alpha\r\nbeta alpha\r\n", "sub/deep/x.py": "alpha = 1", "sub/y.py": "x\nalpha\n",
		odd: "alpha", "skip/z.py": "alpha\n", "bin.dat": "alpha\x00alpha\n", ".hidden": "alpha\n", "late.txt": strings.Repeat("x\n", 5000) + "alpha\x00\n",
	} {
		if err := f.WriteFile(t.Context(), name, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	f.sh(t, "chmod 755 a2.txt; ln -s /etc/passwd out; ln -s sub inner; ln -s / root; mkfifo pipe; mkdir empty")
}

func walkTree(t *testing.T, f *fixture) {
	f.tree(t)
	r, err := f.Walk(t.Context(), env.WalkSpec{Ignore: []string{"sk*"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range r.Entries {
		got = append(got, fmt.Sprintf("%c %o %s %s", e.Kind, e.Mode, e.Path, e.Target))
	}
	want := []string{
		"f 644 .hidden ", "f 755 a2.txt ", "f 644 a10.txt ", "f 644 bin.dat ", "d 755 empty ", "l 777 inner sub", "f 644 late.txt ",
		"f 644 " + odd + " ", "l 777 out /etc/passwd", "? 644 pipe ", "l 777 root /", "d 755 skip ", "d 755 sub ", "d 755 sub/deep ",
		"f 644 sub/deep/x.py ", "f 644 sub/y.py ",
	}
	if d := cmp.Diff(want, got); d != "" || r.Total() != len(want) || r.Incomplete || r.Unreadable != 0 {
		t.Errorf("%+v (-want +got)\n%s", r, d)
	}
	if r, err = f.Walk(t.Context(), env.WalkSpec{Dir: "sub", Depth: 1}); err != nil || r.Total() != 2 || r.Entries[0].Path != "deep" || r.Entries[1].Size != 8 {
		t.Errorf("one level: %+v, %v", r, err)
	}
	if _, err := f.Walk(t.Context(), env.WalkSpec{Dir: "none"}); !errors.Is(err, env.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	if _, err := f.Walk(t.Context(), env.WalkSpec{Ignore: []string{"[a"}}); !errors.Is(err, env.ErrRefused) {
		t.Errorf("bad glob: %v", err)
	}
}

func walkBounds(t *testing.T, f *fixture) {
	f.sh(t, `mkdir -p w; cd w; i=0; while [ $i -lt 3000 ]; do : >f$i; i=$((i+1)); done
mkdir deep; cd deep; i=0; while [ $i -lt 250 ]; do mkdir d; cd d; i=$((i+1)); done`)
	r, err := f.Walk(t.Context(), env.WalkSpec{Dir: "w", Depth: 1, MaxEntries: 10})
	if err != nil || len(r.Entries) != 10 || r.Total() != 3001 || r.Entries[9].Path != "f8" || r.Incomplete {
		t.Errorf("ten of 3001: %d of %d, incomplete %v, %v", len(r.Entries), r.Total(), r.Incomplete, err)
	}
	if r, err = f.Walk(t.Context(), env.WalkSpec{Dir: "w"}); err != nil || !r.Incomplete || len(r.Entries) != env.DefaultMaxEntries {
		t.Errorf("deeper than the limit: %d of %d, incomplete %v, %v", len(r.Entries), r.Total(), r.Incomplete, err)
	}
	if r, err = f.Walk(t.Context(), env.WalkSpec{Timeout: 1}); err != nil || !r.Incomplete {
		t.Errorf("without time: %+v, %v", r, err)
	}
}

// search returns the lines of a search as FILE:NUMBER:TEXT, context lines with "-".
func (f *fixture) search(t *testing.T, q env.SearchSpec) ([]string, env.SearchResult) {
	t.Helper()
	r, err := f.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	var got []string
	for _, l := range r.Lines {
		mark := ":"
		if !l.Match {
			mark = "-"
		}
		got = append(got, fmt.Sprintf("%s%s%d%s%s", l.File, mark, l.Number, mark, l.Text))
	}
	return got, r
}

func searchLines(t *testing.T, f *fixture) {
	f.tree(t)
	for _, c := range []struct {
		name string
		q    env.SearchSpec
		want []string
	}{
		{"everywhere", env.SearchSpec{Pattern: "^alpha$"}, []string{".hidden:1:alpha", "a2.txt:1:alpha", odd + ":1:alpha", "skip/z.py:1:alpha", "sub/y.py:2:alpha"}},
		{"a line does not include its end", env.SearchSpec{Path: "a10.txt", Pattern: "alpha$"}, []string{":2:beta alpha\r"}},
		{"case", env.SearchSpec{Path: "a10.txt", Pattern: "alpha", IgnoreCase: true}, []string{":1:Alpha\r", ":2:beta alpha\r"}},
		{"literal", env.SearchSpec{Pattern: "= 1", Literal: true}, []string{"sub/deep/x.py:1:alpha = 1"}},
		{"literal is not a pattern", env.SearchSpec{Pattern: "a.*a", Literal: true}, nil},
		{"literal, any case", env.SearchSpec{Pattern: "A = 1", Literal: true, IgnoreCase: true}, []string{"sub/deep/x.py:1:alpha = 1"}},
		{"context", env.SearchSpec{Path: "sub", Pattern: "^alpha$", Context: 5}, []string{"y.py-1-x", "y.py:2:alpha"}},
		{"context after", env.SearchSpec{Path: "a2.txt", Pattern: "^alpha$", Context: 1}, []string{":1:alpha", "-2-beta"}},
		{"not through a link", env.SearchSpec{Path: ".", Pattern: "root:"}, nil},
		{"a later NUL is text", env.SearchSpec{Path: "late.txt", Pattern: "alpha"}, []string{":5001:alpha\x00"}},
	} {
		if got, _ := f.search(t, c.q); cmp.Diff(c.want, got) != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, cmp.Diff(c.want, got))
		}
	}
	_, r := f.search(t, env.SearchSpec{Pattern: "alpha"})
	if r.Matches != 8 || r.Files != 8 || r.Binary != 1 || r.Searched != 8 || r.Unreadable != 0 || r.Incomplete {
		t.Errorf("%+v", r)
	}
	if f.sh(t, "chmod 000 sub a2.txt; id -u") != "0\n" {
		if _, r = f.search(t, env.SearchSpec{Pattern: "alpha"}); r.Unreadable != 2 {
			t.Errorf("%d unreadable, want 2", r.Unreadable)
		}
	}
}

func searchGlobs(t *testing.T, f *fixture) {
	f.tree(t)
	for want, q := range map[string]env.SearchSpec{
		"skip/z.py sub/deep/x.py sub/y.py": {Include: []string{"*.py"}},
		"sub/deep/x.py sub/y.py":           {Include: []string{"sub/**"}},
		"sub/y.py":                         {Include: []string{"sub/*.py"}},
		"sub/deep/x.py":                    {Include: []string{"/**/deep/*.{py,txt}"}},
		"a2.txt sub/y.py":                  {Include: []string{"a[0-9].txt", "**/y.py"}},
		".hidden":                          {Include: []string{".*"}},
		"sub/deep/x.py sub/y.py ":          {Include: []string{"*.py"}, Within: []string{"s?b"}},
		"sub/deep/x.py ":                   {Include: []string{"*.py"}, Within: []string{"**/deep"}},
		"skip/z.py":                        {Include: []string{"*.py"}, Exclude: []string{"sub"}},
		"skip/z.py sub/y.py":               {Include: []string{"*.py"}, Exclude: []string{"**/deep/**"}},
		".hidden sub/y.py":                 {Include: []string{".hid*", "*.py"}, Ignore: []string{"skip", "d*"}},
		odd:                                {Include: []string{"odd*"}},
	} {
		q.Pattern = "alpha"
		_, r := f.search(t, q)
		var files []string
		for _, l := range r.Lines {
			files = append(files, l.File)
		}
		if got := strings.Join(files, " "); got != strings.TrimSpace(want) {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
}

func searchBounds(t *testing.T, f *fixture) {
	long := strings.Repeat("é", 100_000)
	for name, text := range map[string]string{
		"five": strings.Repeat("hit\n", 5), "wide": long + "needle" + long + "\nneedle\n", "huge": strings.Repeat("y", 20<<20) + "needle\nneedle",
		"slow": strings.Repeat("a", 8<<20) + "\n",
	} {
		if err := f.WriteFile(t.Context(), name, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]int{1: 1, 4: 4, 5: 5, 6: 5} {
		if got, r := f.search(t, env.SearchSpec{Path: "five", Pattern: "hit", MaxMatches: limit}); len(got) != want || r.Matches != 5 {
			t.Errorf("at most %d: %d lines of %d", limit, len(got), r.Matches)
		}
	}
	_, r := f.search(t, env.SearchSpec{Path: "wide", Pattern: "needle", MaxLine: 100})
	if l := r.Lines[0]; len(r.Lines) != 2 || len(l.Text) > 100 || !strings.Contains(l.Text, "énee") || l.Cut < 199_900 || l.Size != 400_006 || strings.Contains(l.Text, "\uFFFD") {
		t.Errorf("a long line: %+v", r)
	}
	if _, r = f.search(t, env.SearchSpec{Path: "huge", Pattern: "needle"}); r.Matches != 1 || r.Lines[0].Number != 2 || r.LineCount != 2 {
		t.Errorf("beyond what is searched of one line: %+v", r)
	}
	if _, r = f.search(t, env.SearchSpec{Path: "five", Pattern: "", MaxBytes: 7}); len(r.Lines) != 2 || r.Matches != 5 {
		t.Errorf("seven bytes: %+v", r)
	}
	began := time.Now()
	_, r = f.search(t, env.SearchSpec{Path: "slow", Pattern: "(x+x+)+y|(a|aa)+$|.{1000}b", Timeout: 300 * time.Millisecond})
	if took := time.Since(began); took > time.Minute || !r.Incomplete {
		t.Errorf("a slow pattern took %s, incomplete %v", took, r.Incomplete)
	}
}

func searchRange(t *testing.T, f *fixture) {
	text := ""
	for i := range 100 {
		text += fmt.Sprintf("line %d\n", i+1)
	}
	if err := f.WriteFile(t.Context(), "f", []byte(text), 0); err != nil {
		t.Fatal(err)
	}
	got, r := f.search(t, env.SearchSpec{Path: "f", First: 99, Last: 200})
	if d := cmp.Diff([]string{":99:line 99", ":100:line 100"}, got); d != "" || r.LineCount != 100 || r.Stopped {
		t.Errorf("%+v (-want +got)\n%s", r, d)
	}
	if _, r = f.search(t, env.SearchSpec{Path: "f", Pattern: "9", First: 10, Last: 19}); r.Matches != 1 || r.Stopped || r.LineCount != 100 {
		t.Errorf("%+v", r)
	}
	f.sh(t, "truncate -s 1G f")
	if _, r = f.search(t, env.SearchSpec{Path: "f", First: 1, Last: 50}); r.Binary != 1 {
		t.Errorf("a sparse file: %+v", r)
	}
	big := strings.Repeat("some text\n", 2<<20)
	if err := f.WriteFile(t.Context(), "big", []byte(big), 0); err != nil {
		t.Fatal(err)
	}
	f.sh(t, "truncate -s 900M big")
	_, r = f.search(t, env.SearchSpec{Path: "big", First: 5, Last: 6})
	if len(r.Lines) != 2 || !r.Stopped || r.Bytes > 1<<20 {
		t.Errorf("two lines of a huge file: %d lines, stopped %v, %d bytes read", len(r.Lines), r.Stopped, r.Bytes)
	}
}

func searchRefused(t *testing.T, f *fixture) {
	f.tree(t)
	for name, q := range map[string]env.SearchSpec{
		"lookahead": {Pattern: "(?=x)"}, "bracket": {Pattern: "[z-a]"}, "bombs": {Pattern: "(((a{30}){30}){2})[a-z]{1000}\\pL{900}"},
		"long": {Pattern: strings.Repeat("x", 3000), Literal: true}, "glob": {Pattern: "x", Include: []string{"{a"}},
		"alternatives": {Pattern: "x", Include: []string{strings.Repeat("{a,b}", 30)}}, "fifo": {Path: "pipe"}, "device": {Path: "/dev/zero"},
	} {
		if _, err := f.Search(t.Context(), q); !errors.Is(err, env.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Search(t.Context(), env.SearchSpec{Path: "none"}); !errors.Is(err, env.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
