package guest

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack: whatever an archive holds, nothing outside its directory changes.
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
		left, err := os.ReadDir(base)
		if err != nil || len(left) != 1 {
			t.Fatalf("beside the directory: %v, %v", left, err)
		}
	})
}
