package workspace

import (
	"bytes"
	"os"
	"testing"
)

// ReadFile reads the directories above a file and no others.
func TestReadFileReadsOnlyParentDirectories(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Import(t.Context(), bytes.NewReader(files{
		"a/b/c.py": {text: "inner"}, "a/b.py": {text: "beside"}, "link": {target: "a/b.py"}, "other/x.py": {text: "elsewhere"},
	}.tar(t)))
	if err != nil {
		t.Fatal(err)
	}
	root, err := parseHash(tree)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.entries(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Path == "other" {
			if err := os.Remove(s.objectPath(e.hash)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, want := range map[string]string{"a/b/c.py": "inner", "a/b.py": "beside", "link": "a/b.py"} {
		if got, found, err := s.ReadFile(t.Context(), tree, path); err != nil || !found || string(got) != want {
			t.Errorf("%s: %q, %v, %v, want %q", path, got, found, err, want)
		}
	}
	for _, path := range []string{"", "a", "a/b", "a/", "/a/b.py", "a//b.py", "a/b.py/", "a/b.py/c", "link/c", "missing", "a/missing"} {
		if got, found, err := s.ReadFile(t.Context(), tree, path); err != nil || found {
			t.Errorf("%q: %q, %v, %v, want no such file", path, got, found, err)
		}
	}
	if _, _, err := s.ReadFile(t.Context(), tree, "other/x.py"); err == nil {
		t.Error("a file below a directory that is missing from the store was read")
	}
}
