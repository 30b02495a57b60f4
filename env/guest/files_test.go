package guest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Magic links in /proc lead to the guest's open descriptors, so no path from the host may pass
// through them.
func TestOpenFileRefusesMagicLinksOfProc(t *testing.T) {
	dir := t.TempDir()
	open, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := os.Symlink("/proc/self/fd", filepath.Join(dir, "fds")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fmt.Sprintf("/proc/self/fd/%d", open.Fd()), fmt.Sprintf("%s/fds/%d", dir, open.Fd())} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY} {
			f, err := openFile(path, flag, 0)
			if err == nil {
				t.Errorf("%s was opened", path)
				_ = f.Close()
			}
		}
	}
	f, err := openFile(open.Name(), os.O_RDONLY, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Errorf("opening the file by its name: %v", err)
	}
}

// WriteFile does not write through a link that leads out of the workspace.
func TestWriteFileStaysInTheWorkspace(t *testing.T) {
	top := t.TempDir()
	work, outside := filepath.Join(top, "w"), filepath.Join(top, "outside")
	err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(outside, []byte("original"), 0o644),
		os.Symlink(outside, filepath.Join(work, "file")), os.Symlink("..", filepath.Join(work, "up")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "up/outside", "up/new"} {
		x, err := writeFile(workspace(work), filepath.Join(work, name), 0)
		if err != nil {
			continue
		}
		_, err = x.w.Write([]byte("changed"))
		if err = errors.Join(err, x.finish()); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "original" {
		t.Errorf("the file outside holds %q: %v", got, err)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 2 {
		t.Errorf("files beside the workspace: %v, %v", left, err)
	}
}

// A few bytes of an archive must not become a huge file.
func TestUnpackRefusesSparseEntries(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	// tar.Writer cannot write sparse entries, so write records with other names and rename them.
	head := &tar.Header{Name: "huge", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1, Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XXX.sparse.major": "0", "XXX.sparse.minor": "1", "XXX.sparse.size": "1048576", "XXX.sparse.map": "0,1", "XXX.sparse.numblocks": "1",
	}}
	if err := w.WriteHeader(head); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw := bytes.ReplaceAll(buf.Bytes(), []byte("XXX.sparse"), []byte("GNU.sparse"))
	if h, err := tar.NewReader(bytes.NewReader(raw)).Next(); err != nil || h.Size != 1<<20 {
		t.Fatalf("the archive of the test is not sparse: %+v, %v", h, err)
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := unpack(root, bytes.NewReader(raw)); err == nil || !strings.Contains(err.Error(), "is sparse") {
		t.Errorf("unpack = %v, want a refusal", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("unpacked: %v, %v", left, err)
	}
}
