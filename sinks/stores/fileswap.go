package stores

// This file contains the operations of the file store on existing objects, and the
// search for files of killed writers.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/tracesmith/tracesmith/sinks"
)

// fileLock is the file in the temporary directory that is locked while an object is
// compared and replaced.
const fileLock = "lock"

// Copy copies the bytes instead of making a hard link, with which damage to one object would
// also damage the other.
func (f *fileStore) Copy(ctx context.Context, from, key string) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	src, err := f.Open(ctx, from)
	if err != nil {
		return err
	}
	defer src.Close()
	return f.create(ctx, key, src)
}

func (f *fileStore) Swap(ctx context.Context, key string, old, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	return f.swap(ctx, key, old, body)
}

func (f *fileStore) swap(ctx context.Context, key string, old, body []byte) error {
	return f.write(ctx, key, bytes.NewReader(body), func(temp, final string) error {
		lock := flock.New(filepath.Join(f.root, fileTemp, fileLock), flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o644))
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("locking the store: %w", err)
		}
		defer lock.Close()
		current, err := os.ReadFile(final)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(current, old) {
			return sinks.ErrChanged
		}
		if err != nil {
			return err
		}
		return os.Rename(temp, final)
	})
}

// UnfinishedWrites implements sinks.Sweeper.
func (f *fileStore) UnfinishedWrites(ctx context.Context) ([]sinks.UnfinishedWrite, error) {
	dir := filepath.Join(f.root, fileTemp)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing unfinished objects: %w", err)
	}
	var out []sinks.UnfinishedWrite
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || e.Name() == fileLock || !st.Mode().IsRegular() {
			continue // a writer has just finished it, or it is not an unfinished object
		}
		path := filepath.Join(dir, e.Name())
		out = append(out, sinks.UnfinishedWrite{Name: path, Since: st.ModTime(), Remove: func(context.Context) error { return os.Remove(path) }})
	}
	slices.SortFunc(out, func(a, b sinks.UnfinishedWrite) int { return a.Since.Compare(b.Since) })
	return out, ctx.Err()
}
