package workspace

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// tarStream returns a tar archive with these headers. Files that are not in texts contain zeros.
func tarStream(t *testing.T, heads []tar.Header, texts map[string]string) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { r.Close() })
	go func() {
		out := tar.NewWriter(w)
		for _, h := range heads {
			body := io.Reader(zeros{})
			if text, ok := texts[h.Name]; ok {
				h.Size, body = int64(len(text)), strings.NewReader(text)
			}
			err := out.WriteHeader(&h)
			if err == nil && h.Typeflag == tar.TypeReg {
				_, err = io.CopyN(out, body, h.Size)
			}
			if err != nil {
				w.CloseWithError(err)
				return
			}
		}
		w.CloseWithError(out.Close())
	}()
	return r
}

func regular(name string, size int64) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}
}

func TestLargeNewFilesAreLeftOut(t *testing.T) {
	base := files{"a.py": {text: "x = 1\n"}, "data.bin": {text: "old"}}
	fixed := map[string]string{"a.py": "x = 2\n", "data.bin": "old"}
	fix := []tar.Header{regular("a.py", 0), regular("data.bin", 0)}
	const large = MaxFileBytes + 1
	var several []tar.Header
	for i := range 4 {
		several = append(several, regular(fmt.Sprintf("dump.%d", i), 40<<20+int64(i)))
	}
	for name, c := range map[string]struct {
		more []tar.Header
		left []schemas.OmittedFile
		in   string // a text that the patch contains in addition to the fix
	}{
		"one":          {[]tar.Header{regular("core.1", large)}, []schemas.OmittedFile{{Path: "core.1", Bytes: large}}, ""},
		"at the limit": {[]tar.Header{regular("core.1", MaxFileBytes)}, nil, "core.1"},
		"in a new directory": {
			[]tar.Header{{Name: "out/", Typeflag: tar.TypeDir}, regular("out/run/log", large), regular("out/small", 3)},
			[]schemas.OmittedFile{{Path: "out/run/log", Bytes: large}}, "out/small",
		},
		"far above the limit": {[]tar.Header{regular("huge", 3<<30)}, []schemas.OmittedFile{{Path: "huge", Bytes: 3 << 30}}, ""},
		"linked": {
			[]tar.Header{regular("core.1", large), {Name: "core.2", Typeflag: tar.TypeLink, Linkname: "core.1"}},
			[]schemas.OmittedFile{{Path: "core.1", Bytes: large}, {Path: "core.2", Bytes: large}}, "",
		},
		"too many for one patch": {several, []schemas.OmittedFile{{Path: "dump.2", Bytes: 40<<20 + 2}, {Path: "dump.3", Bytes: 40<<20 + 3}}, "dump.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			patch, tree, left, err := s.Diff(t.Context(), repo{t, base}, tarStream(t, append(c.more, fix...), fixed))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Error(diff)
			}
			start, err := s.Base(t.Context(), repo{t, base})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Apply(t.Context(), start, patch); err != nil || got != tree {
				t.Errorf("applying the patch returns %s (error %v), want %s", got, err, tree)
			}
			if !bytes.Contains(patch, []byte("+x = 2")) || !bytes.Contains(patch, []byte(c.in)) {
				t.Errorf("the patch lacks the fix or %q", c.in)
			}
			for _, l := range c.left {
				if bytes.Contains(patch, []byte(l.Path)) {
					t.Errorf("the patch has %s", l.Path)
				}
			}
		})
	}
}

// It is an error if a file of the base tree becomes too large. If the patch omitted that file, it would silently keep
// the old content.
func TestLargeKnownFilesAreRefused(t *testing.T) {
	base := files{"data.bin": {text: "old"}}
	_, _, _, err := open(t).Diff(t.Context(), repo{t, base}, tarStream(t, []tar.Header{regular("data.bin", MaxFileBytes+1)}, nil))
	if err == nil || !strings.Contains(err.Error(), `"data.bin": has 67108865 bytes`) {
		t.Errorf("Diff = %v", err)
	}
}
