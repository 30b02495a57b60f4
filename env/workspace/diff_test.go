package workspace

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatchRebuildsFinalTree(t *testing.T) {
	text := tarEntry{text: "a\nb\nc\n"}
	cases := map[string][2]files{
		"edit":             {{"f": text}, {"f": {text: "a\nB\nc\n"}}},
		"same":             {{"f": text}, {"f": text}},
		"no newline added": {{"f": text}, {"f": {text: "a\nb\nc"}}},
		"crlf":             {{"f": text}, {"f": {text: "a\r\nb\r\nc\r\n"}}},
		"lone cr":          {{"f": text}, {"f": {text: "a\rb\n\r\nc"}}},
		"binary":           {{"f": {text: "\x00\x01\x02"}}, {"f": {text: "\x00\x01\x03\xff"}, "g": {text: "\x00"}}},
		"mode":             {{"f": text}, {"f": {text: text.text, exec: true}}},
		"mode and text":    {{"f": text}, {"f": {text: "x", exec: true}}},
		"to link":          {{"f": text}, {"f": {target: "a\nb"}}},
		"from link":        {{"f": {target: "x"}}, {"f": text}},
		"link target":      {{"f": {target: "x"}}, {"f": {target: "/y"}}},
		"delete":           {{"f": text, "g": text}, {"g": text}},
		"delete all":       {{"f": text}, {}},
		"from nothing":     {{}, {"f": text, "d/e": {text: ""}}},
		"empty file":       {{"f": text}, {"f": {text: ""}}},
		"delete empty":     {{"f": {text: ""}, "g": text}, {"g": text}},
		"file to dir":      {{"f": text}, {"f/g": text}},
		"dir to file":      {{"f/g": text, "f/h": text}, {"f": text}},
		"link to dir":      {{"f": {target: "d"}, "d/x": text}, {"f/x": text, "d/x": text}},
		"dir to link":      {{"f/x": text, "d/x": text}, {"f": {target: "d"}, "d/x": text}},
		"whitespace":       {{"f": {text: "a \n\tb\n"}}, {"f": {text: "a  \n \tb  \n\n\n"}}},
		"attributes":       {{"f": text, ".gitattributes": {text: "* text=auto eol=lf whitespace=fix\n"}}, {"f": {text: "a \r\nb\r\n\r\n"}, ".gitattributes": {text: "* -diff\n"}}},
		"odd names":        {{"a b\t\"q\"\n": text}, {"a b\t\"q\"\n": {text: "x\n"}, "ü": text, "\xff": text, "-x": text, "a\\b": text, "git~1": text}},
		"looks like diff":  {{"f": {text: "--- a/f\n+++ b/f\n@@ -1 +1 @@\n"}}, {"f": {text: "diff --git a/f b/f\n-- \n2.0\n"}}},
	}
	s := open(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { checkRoundTrip(t, s, c[0], c[1]) })
	}
}

// randomFiles returns a random workspace with few possible names, so that two of them often have a file, a directory
// and a symlink under the same name.
func randomFiles(r *rand.Rand) files {
	names := []string{"a", "a/b", "a/b/c", "a.py", "d/e", "d", "d/f", "x y", "é"}
	lines := []string{"one\n", "two\r\n", "\x00", "three", "\n", "  \t\n", "-- a\n", "\\ No newline at end of file\n"}
	out := files{}
	for _, i := range r.Perm(len(names))[:r.IntN(len(names))] {
		name, taken := names[i], false
		for other := range out {
			taken = taken || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
		}
		if taken {
			continue
		}
		e := tarEntry{exec: r.IntN(4) == 0}
		for range r.IntN(12) {
			e.text += lines[r.IntN(len(lines))]
		}
		if r.IntN(6) == 0 {
			e = tarEntry{target: names[r.IntN(len(names))]}
		}
		out[name] = e
	}
	return out
}

func TestPatchRebuildsRandomTrees(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		checkRoundTrip(t, s, randomFiles(r), randomFiles(r))
	}
}

func FuzzPatchRebuilds(f *testing.F) {
	f.Add("a\nb\n", "a\r\nb", false, true)
	f.Add("", "\x00\n", true, false)
	s := open(f)
	f.Fuzz(func(t *testing.T, before, after string, execBefore, execAfter bool) {
		checkRoundTrip(t, s, files{"f": {text: before, exec: execBefore}}, files{"f": {text: after, exec: execAfter}})
	})
}

func FuzzImport(f *testing.F) {
	f.Add(files{"a": {text: "x"}, "b/c": {target: "../a"}}.tar(f))
	s := open(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, err := s.Import(t.Context(), bytes.NewReader(raw))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := s.Export(t.Context(), tree, &out); err != nil {
			t.Fatal(err)
		}
		if again, err := s.Import(t.Context(), &out); err != nil || again != tree {
			t.Fatalf("export and import again: %s, %v; want %s", again, err, tree)
		}
	})
}

func TestApplyNamesTheHunk(t *testing.T) {
	s := open(t)
	base := s.mustImport(t, files{"pkg/f.py": {text: "a\nb\nc\n"}})
	_, err := s.Apply(t.Context(), base, []byte("--- a/pkg/f.py\n+++ b/pkg/f.py\n@@ -1,3 +1,3 @@\n a\n-X\n+Y\n c\n"))
	if e, ok := errors.AsType[*ApplyError](err); !ok || !strings.Contains(e.Error(), "pkg/f.py:1") {
		t.Errorf("Apply = %v, want an ApplyError naming pkg/f.py:1", err)
	}
	for _, bad := range []string{"not a patch\n", "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", "diff --git a/.git/x b/.git/x\nnew file mode 100644\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n"} {
		if tree, err := s.Apply(t.Context(), base, []byte(bad)); err == nil {
			t.Errorf("Apply(%q) = %s, want an error", bad, tree)
		}
	}
}

func TestChanged(t *testing.T) {
	s := open(t)
	a := s.mustImport(t, files{"m": {text: "1\n2\n"}, "d": {text: "x\n"}, "t": {text: "x\n"}, "e": {text: "y"}, "same": {text: "z"}})
	b := s.mustImport(t, files{"m": {text: "1\n3\n4\n"}, "n": {text: "\x00"}, "t": {target: "m"}, "e": {text: "y", exec: true}, "same": {text: "z"}})
	got, err := s.Changed(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{"d", "D", ModeFile, 0, 0, 1}, {"e", "M", ModeFile, ModeExec, 0, 0}, {"m", "M", ModeFile, ModeFile, 2, 1},
		{"n", "A", 0, ModeFile, -1, -1}, {"t", "T", ModeFile, ModeSymlink, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestRestore(t *testing.T) {
	s := open(t)
	base := s.mustImport(t, files{"tests/a": {text: "1"}, "tests/b": {text: "2"}, "p": {text: "3"}})
	isProtected := func(p string) bool { return p == "tests" || strings.HasPrefix(p, "tests/") }
	for name, c := range map[string]struct {
		final, want files
		restored    []string
	}{
		"edited":  {files{"tests/a": {text: "X"}, "tests/b": {text: "2"}, "p": {text: "4"}}, files{"tests/a": {text: "1"}, "tests/b": {text: "2"}, "p": {text: "4"}}, []string{"tests/a"}},
		"deleted": {files{"p": {text: "4"}}, files{"tests/a": {text: "1"}, "tests/b": {text: "2"}, "p": {text: "4"}}, []string{"tests/a", "tests/b"}},
		"linked":  {files{"tests": {target: "q"}, "q/a": {text: "X"}}, files{"tests/a": {text: "1"}, "tests/b": {text: "2"}, "q/a": {text: "X"}}, []string{"tests", "tests/a", "tests/b"}},
		"mode":    {files{"tests/a": {text: "1", exec: true}, "tests/b": {text: "2"}, "tests/c": {text: "9"}}, files{"tests/a": {text: "1"}, "tests/b": {text: "2"}}, []string{"tests/a", "tests/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree, restored, err := s.Restore(t.Context(), base, s.mustImport(t, c.final), isProtected)
			if err != nil {
				t.Fatal(err)
			}
			if want := s.mustImport(t, c.want); tree != want {
				t.Errorf("tree = %s, want %s", tree, want)
			}
			if diff := cmp.Diff(c.restored, restored); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReverseUndoesAPatch(t *testing.T) {
	s := open(t)
	base := s.mustImport(t, files{"a": {text: "1\n2\n3\n"}, "b": {text: "x\n"}})
	final := s.mustImport(t, files{"a": {text: "1\n9\n3\n"}, "c": {text: "new\n"}})
	patch, err := s.DiffTrees(t.Context(), base, final)
	if err != nil {
		t.Fatal(err)
	}
	if reversed, err := s.Reverse(t.Context(), final, patch); err != nil || reversed != base {
		t.Errorf("Reverse = %s, %v; want %s", reversed, err, base)
	}
	var applyErr *ApplyError
	if _, err := s.Reverse(t.Context(), base, patch); !errors.As(err, &applyErr) {
		t.Errorf("Reverse of a patch that was not applied = %v", err)
	}
}

func TestEditReplacesAddsAndRemoves(t *testing.T) {
	s := open(t)
	base := s.mustImport(t, files{"a": {text: "1\n"}, "d/b": {text: "x\n"}, "d/c": {text: "y\n"}})
	got, err := s.Edit(t.Context(), base, map[string][]byte{"d/b": []byte("z\n"), "d/c": nil, "e/f": []byte("new\n")})
	if want := s.mustImport(t, files{"a": {text: "1\n"}, "d/b": {text: "z\n"}, "e/f": {text: "new\n"}}); err != nil || got != want {
		t.Errorf("Edit = %s, %v; want %s", got, err, want)
	}
	if _, err := s.Edit(t.Context(), base, map[string][]byte{"a/b": []byte("x")}); err == nil {
		t.Error("Edit created a file below a file")
	}
}
