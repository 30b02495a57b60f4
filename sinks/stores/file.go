package stores

// This file implements the file store, in which a key is a path below the root. The
// store writes an object to a temporary file, syncs it, and links it to its final name.
// Because link fails if the name exists, creation is atomic and exclusive, and a killed
// writer leaves nothing under a final name.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	registry.Register(plugin.Spec[sinks.Store, request]{
		Kind: "file", Summary: "a directory",
		New: func(_ any, r request) (sinks.Store, error) { return newFile(r.uri) },
	})
}

// fileTemp is the directory below the root for temporary files.
const fileTemp = reserved + "tmp"

type fileStore struct{ root string }

func newFile(root string) (*fileStore, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("opening directory %s: %w", root, err)
	}
	if st, err := os.Stat(abs); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("%s: %w: name a directory", root, syscall.ENOTDIR)
	}
	return &fileStore{root: abs}, nil
}

func (f *fileStore) URI() string { return "file://" + filepath.ToSlash(f.root) }

// LocalPath implements sinks.Local.
func (f *fileStore) LocalPath(key string) string {
	return filepath.Join(f.root, filepath.FromSlash(key))
}

func (f *fileStore) Create(ctx context.Context, key string, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	return f.create(ctx, key, bytes.NewReader(body))
}

func (f *fileStore) CreateFile(ctx context.Context, key, path string) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	src, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening file for object %s: %w", key, err)
	}
	defer src.Close()
	return f.create(ctx, key, src)
}

func (f *fileStore) create(ctx context.Context, key string, body io.Reader) error {
	if _, err := os.Lstat(f.LocalPath(key)); err == nil {
		return fmt.Errorf("creating %s: %w", key, sinks.ErrExists)
	}
	return f.write(ctx, key, body, func(temp, final string) error {
		if err := os.Link(temp, final); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return sinks.ErrExists
			}
			return err
		}
		return nil
	})
}

// write writes body to a synced temporary file and calls place to move it to its final name.
func (f *fileStore) write(ctx context.Context, key string, body io.Reader, place func(temp, final string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	final := f.LocalPath(key)
	if err := f.mkdir(filepath.Dir(final)); err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	tempDir := filepath.Join(f.root, fileTemp)
	if err := os.MkdirAll(tempDir, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	temp, err := os.CreateTemp(tempDir, "*")
	if err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if _, err := io.Copy(temp, body); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	if err := errors.Join(temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	if err := place(temp.Name(), final); err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	return syncDir(filepath.Dir(final))
}

// mkdir creates dir and its parents, and syncs every directory that gained an entry.
func (f *fileStore) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for d := dir; len(d) >= len(f.root) && d != filepath.Dir(d); d = filepath.Dir(d) {
		if err := syncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	return nil
}

func (f *fileStore) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := f.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return body, nil
}

func (f *fileStore) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := errors.Join(checkKey(key), ctx.Err()); err != nil {
		return nil, err
	}
	r, err := os.Open(f.LocalPath(key))
	if err != nil {
		return nil, fileErr("opening", key, err)
	}
	if st, err := r.Stat(); err != nil || st.IsDir() {
		r.Close()
		return nil, fmt.Errorf("opening %s: %w", key, sinks.ErrNotFound)
	}
	return r, nil
}

// Head reads the object to hash it, because a hash that is stored separately could disagree.
func (f *fileStore) Head(ctx context.Context, key string) (sinks.Object, error) {
	r, err := f.Open(ctx, key)
	if err != nil {
		return sinks.Object{}, err
	}
	defer r.Close()
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return sinks.Object{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return sinks.Object{Key: key, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// List leaves SHA256 empty.
func (f *fileStore) List(ctx context.Context, prefix string) iter.Seq2[sinks.Object, error] {
	return func(yield func(sinks.Object, error) bool) {
		objects, err := f.walk(ctx, prefix)
		if err != nil {
			yield(sinks.Object{}, fmt.Errorf("listing %s: %w", f.URI(), err))
			return
		}
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (f *fileStore) walk(ctx context.Context, prefix string) ([]sinks.Object, error) {
	var out []sinks.Object
	dir := prefix[:strings.LastIndex(prefix, "/")+1]
	err := filepath.WalkDir(f.LocalPath(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // an empty store, or an object that was deleted during the walk
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, err := filepath.Rel(f.root, p)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(rel)
		switch {
		case strings.HasPrefix(key, reserved) && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(key, reserved), !d.Type().IsRegular(), !strings.HasPrefix(key, prefix):
			return nil
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		out = append(out, sinks.Object{Key: key, Size: st.Size()})
		return nil
	})
	slices.SortFunc(out, func(a, b sinks.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, err
}

func (f *fileStore) Delete(ctx context.Context, key string) error {
	if err := errors.Join(checkKey(key), ctx.Err()); err != nil {
		return err
	}
	if err := os.Remove(f.LocalPath(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

func (f *fileStore) Probe(ctx context.Context) error {
	return probe(ctx, f, conditionalWrites{
		create: func(key string, body []byte) error { return f.create(ctx, key, bytes.NewReader(body)) },
		read: func(key string) (func([]byte) error, error) {
			old, err := f.Get(ctx, key)
			return func(body []byte) error { return f.swap(ctx, key, old, body) }, err
		},
	})
}

func fileErr(operation, key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %s: %w", operation, key, sinks.ErrNotFound)
	}
	return fmt.Errorf("%s %s: %w", operation, key, err)
}
