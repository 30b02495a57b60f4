package pipeline

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"testing"
)

// sourceTree is a tree with one Python file. It counts how often it is read.
type sourceTree struct {
	hash  string
	reads int
	err   error
}

func (t *sourceTree) SHA256() string { return t.hash }

func (t *sourceTree) WriteTar(w io.Writer) error {
	t.reads++
	if t.err != nil {
		return t.err
	}
	out := tar.NewWriter(w)
	for name, text := range map[string]string{"pkg/a.py": "def f():\n    pass\n", "notes.txt": "def g():\n"} {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return out.Close()
}

func TestFunctionsAreReadOncePerTree(t *testing.T) {
	var cache functionCache
	tree := &sourceTree{hash: "a"}
	for range 2 {
		got, err := cache.get(tree)
		if err != nil || len(got.functions) != 1 || len(got.functions["pkg/a.py"]) != 1 || got.functions["pkg/a.py"][0].Name != "f" || !got.names["def"] {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if tree.reads != 1 {
		t.Errorf("the tree was read %d times", tree.reads)
	}
	for i := range maxCachedTrees {
		if _, err := cache.get(&sourceTree{hash: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cache.get(tree); err != nil || tree.reads != 2 || len(cache.last) != maxCachedTrees {
		t.Errorf("the cache keeps %d trees; the first one was read %d times; %v", len(cache.last), tree.reads, err)
	}
	broken := &sourceTree{hash: "b", err: errors.New("no disk")}
	if _, err := cache.get(broken); err == nil {
		t.Error("a tree that cannot be read has functions")
	}
	broken.err = nil
	if got, err := cache.get(broken); err != nil || len(got.functions) != 1 {
		t.Errorf("the cache keeps an error: %v", err)
	}
}
