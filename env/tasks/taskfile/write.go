package taskfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Writer writes a task file. The file appears under its name, complete, when Close returns. Repositories are stored in
// trees/<sha256>.tar.zst beside the file; other task files in the directory may share them. Equal tasks give equal
// bytes. A Writer is not safe for concurrent use.
type Writer struct {
	name string
	file *renameio.PendingFile
	out  *bufio.Writer
	seen map[string]bool
	err  error
}

// Create returns a Writer for a new task file. It creates the directory of the file.
func Create(name string) (*Writer, error) {
	if !strings.HasSuffix(name, ".jsonl") {
		return nil, fmt.Errorf("%s: a task file is written as .jsonl", name)
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of the task file: %w", err)
	}
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("creating the task file: %w", err)
	}
	return &Writer{name: name, file: f, out: bufio.NewWriter(f), seen: map[string]bool{}}, nil
}

// AddTree stores a repository, unless it is already stored, and returns its repo_tree value.
func (w *Writer) AddTree(t *workspace.Tree) (string, error) {
	ref := path.Join("trees", t.SHA256()+".tar.zst")
	name := filepath.Join(filepath.Dir(w.name), filepath.FromSlash(ref))
	if _, err := os.Stat(name); err == nil {
		return ref, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("storing a repository: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", fmt.Errorf("storing a repository: %w", err)
	}
	err := writeAtomic(name, func(out io.Writer) error {
		enc, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		return errors.Join(t.WriteTar(enc), enc.Close())
	})
	if err != nil {
		return "", fmt.Errorf("storing a repository: %w", err)
	}
	return ref, os.Chmod(name, 0o644)
}

// Add appends a task. The task must have a Source, and in TreeSHA256 the hash of the repository after its bug patch.
// Add sets other missing fields as Complete does. ref is the result of AddTree for the repository before the patch.
func (w *Writer) Add(t schemas.Task, ref string) error {
	t = Complete(t, "")
	switch {
	case t.Source == "" || t.TreeSHA256 == "" || !filepath.IsLocal(ref):
		return fmt.Errorf("writing task %s: it needs a source, a tree_sha256 and a repository from AddTree", t.InstanceID)
	case w.seen[t.InstanceID]:
		return fmt.Errorf("writing task %s: the file already contains a task with that instance_id", t.InstanceID)
	}
	if p := Problems(t); len(p) > 0 {
		return fmt.Errorf("writing task %s: %s", t.InstanceID, p[0].Text)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line{Task: t, RepoTree: ref}); err != nil {
		return fmt.Errorf("writing task %s: %w", t.InstanceID, err)
	}
	if buf.Len() > maxLine {
		return fmt.Errorf("writing task %s: it has more than %d MB", t.InstanceID, maxLine>>20)
	}
	w.seen[t.InstanceID] = true
	_, err := w.out.Write(buf.Bytes())
	w.err = cmp.Or(w.err, err)
	return err
}

// Close completes the file and moves it into place. It replaces an existing file.
func (w *Writer) Close() error {
	defer w.Abort()
	err := errors.Join(w.err, w.out.Flush())
	if err == nil {
		err = w.file.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", w.name, err)
	}
	return nil
}

// Abort discards the file. It does nothing after Close.
func (w *Writer) Abort() {
	_ = w.file.Cleanup() // if this fails, only a hidden temporary file remains
}
