package guest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pack archives a tree as deep as the longest path allows, including a directory without
// permissions, and restores the mode of that directory.
func TestPackDeepDirectories(t *testing.T) {
	const depth, locked = 2000, 1000
	top := t.TempDir()
	at, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	var lock *os.Root
	for n := range depth {
		if err := at.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := at.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		if n == locked {
			lock = at
		} else if err := at.Close(); err != nil {
			t.Fatal(err)
		}
		at = below
	}
	defer func() { _ = lock.Close() }()
	if err := errors.Join(at.WriteFile("bottom", []byte("here"), 0o600), lock.Chmod("d", 0)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Chmod("d", 0o700) }()
	x, err := packFrom(top)
	if err != nil {
		t.Fatal(err)
	}
	defer x.abort()
	entries, last := 0, ""
	for tr := tar.NewReader(x.r); ; entries++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = h.Name
	}
	if want := strings.Repeat("d/", depth) + "bottom"; last != want || entries != depth+1 {
		t.Errorf("%d entries, the last one %.50s...", entries, last)
	}
	if fi, err := lock.Stat("d"); err != nil || fi.Mode().Perm() != 0 {
		t.Errorf("the locked directory is now %v, %v", fi.Mode(), err)
	}
}

// FuzzUnpack checks that no archive changes anything outside its directory.
func FuzzUnpack(f *testing.F) {
	for _, h := range []tar.Header{
		{Name: "../out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "a/../../out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "link", Linkname: "..", Typeflag: tar.TypeSymlink},
		{Name: "dir/", Mode: 0o700, Typeflag: tar.TypeDir},
	} {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		if err := w.WriteHeader(&h); err != nil {
			f.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(buf.Bytes())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		base := t.TempDir()
		inside := filepath.Join(base, "inside")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(inside)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_ = unpack(root, bytes.NewReader(raw))
		found, err := os.ReadDir(base)
		if err != nil || len(found) != 1 {
			t.Fatalf("files beside the directory: %v, %v", found, err)
		}
	})
}
