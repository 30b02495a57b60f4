package mutate

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The patch of every site of two files applies and changes nothing outside the site's lines. One
// file has another encoding, tabs, CRLF, form feeds, comments inside conditions and no newline at
// its end.
func TestEverySitePatchesOnlyItsLines(t *testing.T) {
	b := start(t, "testdata/shop")
	sites := b.sites("stock.py", "odd.py")
	seen := map[string]bool{}
	for _, s := range sites {
		m := b.apply(s)
		if seen[string(m.Patch)] {
			t.Errorf("%v: the same patch again", s)
		}
		seen[string(m.Patch)] = true
		raw, err := os.ReadFile(filepath.Join(b.dir, s.File))
		if err != nil {
			t.Fatal(err)
		}
		before, after := bytes.SplitAfter(raw, []byte("\n")), bytes.SplitAfter(b.patched(s.File, m.Patch), []byte("\n"))
		tail := len(before) - s.EndLine
		if len(after) < s.Line-1+tail {
			t.Fatalf("%v: only %d lines remain", s, len(after))
		}
		if !slices.EqualFunc(before[:s.Line-1], after[:s.Line-1], bytes.Equal) || !slices.EqualFunc(before[s.EndLine:], after[len(after)-tail:], bytes.Equal) {
			t.Errorf("%v changes other lines:\n%s", s, m.Patch)
		}
	}
	if len(seen) < 55 {
		t.Errorf("only %d sites", len(seen))
	}
}

func TestMutationsNameTheirFunctions(t *testing.T) {
	b := start(t, "testdata/shop")
	sites := b.sites("stock.py")
	i := slices.IndexFunc(sites, func(s Site) bool { return s.Operator == "r1" && s.Func == "Stock.add" })
	if i < 0 {
		t.Fatal("no comparison in Stock.add")
	}
	m := b.apply(sites[i])
	want := "--- a/stock.py\n+++ b/stock.py\n@@ -15,7 +15,7 @@"
	if !strings.Contains(string(m.Patch), want) || !strings.Contains(string(m.Patch), "-        if count <= 0:\n+        if count < 0:\n") {
		t.Errorf("patch:\n%s", m.Patch)
	}
	if len(m.Funcs) != 1 || m.Funcs[0].Name != "Stock.add" || m.Funcs[0].Line != 17 || m.Funcs[0].EndLine != 26 || m.Funcs[0].Before == m.Funcs[0].After {
		t.Errorf("functions %+v", m.Funcs)
	}
	if again := b.apply(sites[i]); cmp.Diff(m, again) != "" {
		t.Error(cmp.Diff(m, again))
	}
	if other := b.apply(sites[i+1]); other.BodyHash == m.BodyHash {
		t.Error("two bugs have the same hash")
	}
}

func TestSiteOfAnotherVersionIsRefused(t *testing.T) {
	b := start(t, "testdata/shop")
	sites := b.sites("stock.py")
	if err := b.sb.WriteFile(t.Context(), workdir+"/stock.py", []byte("def f(a, b):\n    return a < b\n"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Apply(t.Context(), sites[:1]); err == nil || !strings.Contains(err.Error(), "not the one that was listed") {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatCannotBeReadAreSkippedWithTheirReason(t *testing.T) {
	b := start(t, "testdata/shop")
	for name, text := range map[string]string{
		"broken.py": "def f(:\n", "nul.py": "a = 1\x00\n", "deep.py": "x = " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000) + "\n",
		"coding.py": "# coding: no-such-code\n", "utf.py": "x = '\xff'\n",
		"sum.py": "x = " + strings.Repeat("1 + ", 60000) + "1\n",
	} {
		if err := b.sb.WriteFile(t.Context(), workdir+"/"+name, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Enumerate(t.Context(), []File{{Path: "broken.py"}, {Path: "nul.py"}, {Path: "deep.py"}, {Path: "sum.py"}, {Path: "coding.py"}, {Path: "utf.py"},
		{Path: "missing.py"}, {Path: "../outside.py"}, {Path: "/etc/passwd"}, {Path: "stock.py"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Skipped) != 9 || len(got.Sites) == 0 {
		t.Errorf("%d sites, skipped %v", len(got.Sites), got.Skipped)
	}
	for _, s := range got.Skipped {
		t.Log(s)
		if s.Why == "" || strings.Contains(s.Why, "the mutator failed") {
			t.Errorf("%s: %q", s.File, s.Why)
		}
	}
}

func TestEnumerateOnlyGivenLines(t *testing.T) {
	b := start(t, "testdata/shop")
	got, err := b.Enumerate(t.Context(), []File{{Path: "stock.py", Lines: []int{18, 38}}, {Path: "odd.py", Lines: []int{}}})
	if err != nil || len(got.Sites) == 0 {
		t.Fatal(got, err)
	}
	for _, s := range got.Sites {
		if s.File != "stock.py" || s.Line != 18 && s.Line != 38 {
			t.Errorf("%+v", s)
		}
	}
}

// Types that a run recorded take precedence over those that the source shows.
func TestRecordedTypesDecideWhichNamesAreAlike(t *testing.T) {
	b := start(t, "testdata/shop")
	f := File{Path: "t.py"}
	if err := b.sb.WriteFile(t.Context(), workdir+"/t.py", []byte("def f(a, b, c):\n    return g(a)\n"), 0); err != nil {
		t.Fatal(err)
	}
	notes := func() (out []string, sites []Site) {
		got, err := b.Enumerate(t.Context(), []File{f})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Sites {
			if s.Operator == "f3" {
				out, sites = append(out, s.Note), append(sites, s)
			}
		}
		return out, sites
	}
	if got, _ := notes(); got != nil {
		t.Errorf("without types: %v", got)
	}
	f.Types = map[string]map[string][]string{"f": {"a": {"int"}, "b": {"str"}, "c": {"int", "NoneType"}}}
	got, sites := notes()
	if !slices.Equal(got, []string{"`a` -> `c`"}) {
		t.Fatalf("with types: %v", got)
	}
	if m := b.apply(sites...); !strings.Contains(string(m.Patch), "+    return g(c)\n") {
		t.Errorf("%s", m.Patch)
	}
}
