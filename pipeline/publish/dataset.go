package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// Dataset is one published version, opened for reading. It checks every file against the
// manifest before its first use. It is safe for concurrent use. Call Close to remove
// downloaded files.
type Dataset struct {
	Manifest schemas.Manifest
	store    sinks.Store
	base     string // prefix of the version's keys; "" if the version is at the root
	exposed  bool   // whether the root has a copy of the version

	mu       sync.Mutex
	verified map[string]string // path in the manifest -> verified local file
	scratch  string
	skipped  map[string]LeftOut // by path; nil: damaged files are errors
	warnings []string
}

// Open opens the latest version, to which latest.json points. If the store contains only
// one version, such as a copy of a dataset's root, it opens that version. An error that
// wraps sinks.ErrNotFound means that there is no dataset.
func Open(ctx context.Context, store sinks.Store) (*Dataset, error) {
	d := &Dataset{store: store, verified: map[string]string{}}
	raw, err := store.Get(ctx, latestKey)
	if errors.Is(err, sinks.ErrNotFound) {
		return d.load(ctx, "")
	}
	if err != nil {
		return nil, fmt.Errorf("opening dataset: %w", err)
	}
	var p schemas.Pointer
	if err := json.Unmarshal(raw, &p); err != nil || p.Manifest == "" {
		return nil, fmt.Errorf("%s/%s is damaged: publish again to restore it", store.URI(), latestKey)
	}
	d.base = strings.TrimSuffix(p.Manifest, manifestKey)
	if _, err := store.Head(ctx, p.Manifest); errors.Is(err, sinks.ErrNotFound) && strings.HasPrefix(d.base, versionsDir) {
		single := &Dataset{store: store, verified: map[string]string{}}
		if single, err = single.load(ctx, p.ManifestSHA256); !errors.Is(err, sinks.ErrNotFound) {
			return single, err
		}
	}
	d.exposed = strings.HasPrefix(d.base, versionsDir)
	return d.load(ctx, p.ManifestSHA256)
}

// OpenVersion opens one version of the dataset in store.
func OpenVersion(ctx context.Context, store sinks.Store, version string) (*Dataset, error) {
	d := &Dataset{store: store, base: versionBase(version), verified: map[string]string{}}
	return d.load(ctx, "")
}

// load reads the manifest of the version with the prefix d.base. want is the expected hash
// of the manifest; "" if unknown.
func (d *Dataset) load(ctx context.Context, want string) (*Dataset, error) {
	raw, err := d.store.Get(ctx, d.base+manifestKey)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil, fmt.Errorf("no dataset in %s (%s): %w: use the location given to publish --to", d.store.URI(), d.base+manifestKey, sinks.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("opening dataset: %w", err)
	}
	if want != "" && schemas.HashBytes(raw) != want {
		return nil, d.corrupt(manifestKey, errors.New("its SHA-256 is not the one in latest.json"))
	}
	if d.Manifest, err = decodeManifest(raw); err != nil {
		return nil, d.corrupt(manifestKey, err)
	}
	return d, nil
}

// Close removes downloaded files.
func (d *Dataset) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.scratch == "" {
		return nil
	}
	dir := d.scratch
	d.scratch = ""
	return os.RemoveAll(dir)
}

// corrupt returns a *formats.CorruptError for a file of the version.
func (d *Dataset) corrupt(path string, err error) error {
	return &formats.CorruptError{Path: d.store.URI() + "/" + keyBelow(d.base, path), Err: err}
}

// File returns the local path of a file of the manifest, after downloading it if necessary and
// checking its size and hash. Of a version whose files are at the root as well, it takes that copy if
// the other one is missing or damaged, and Warnings says so. If there is no intact copy, the error is a
// *formats.CorruptError.
func (d *Dataset) File(ctx context.Context, f schemas.ManifestFile) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if local, ok := d.verified[f.Path]; ok {
		return local, nil
	}
	local, err := d.verify(ctx, keyBelow(d.base, f.Path), f)
	corrupt, ok := errors.AsType[*formats.CorruptError](err)
	switch {
	case err == nil && d.exposed:
		d.checkCopy(f)
	case ok && d.exposed:
		var copyErr error
		if local, copyErr = d.verify(ctx, f.Path, f); copyErr != nil {
			return "", err
		}
		problem := "is missing"
		if corrupt.Err != nil {
			problem = "is damaged"
		}
		d.warnings = append(d.warnings, fmt.Sprintf("%s %s; the intact copy %s is read instead", corrupt.Path, problem, f.Path))
	case err != nil:
		return "", err
	}
	d.verified[f.Path] = local
	return local, nil
}

// verify returns the local path of the object with a key, which must be the file of the manifest.
func (d *Dataset) verify(ctx context.Context, key string, f schemas.ManifestFile) (string, error) {
	path := d.store.URI() + "/" + key
	src, err := d.store.Open(ctx, key)
	if errors.Is(err, sinks.ErrNotFound) {
		return "", &formats.CorruptError{Path: path}
	}
	if err != nil {
		return "", fmt.Errorf("opening dataset file: %w", err)
	}
	defer src.Close()
	local, dst, err := d.localFile(key, f.SHA256)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, dst), src)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("reading dataset file %s: %w", key, err)
	}
	if n != f.Bytes || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return "", &formats.CorruptError{Path: path, Err: errors.New("its content does not match the manifest")}
	}
	return local, nil
}

// checkCopy warns if the copy at the root, which other programs read, is missing or has another size. It does not
// look at remote stores, where this takes a request per file.
func (d *Dataset) checkCopy(f schemas.ManifestFile) {
	l, ok := d.store.(sinks.Local)
	if !ok {
		return
	}
	switch st, err := os.Stat(l.LocalPath(f.Path)); {
	case errors.Is(err, fs.ErrNotExist):
		d.warnings = append(d.warnings, fmt.Sprintf("%s is missing, where pandas and other programs look for it; a copy in %s is read instead", f.Path, versionsDir))
	case err == nil && st.Size() != f.Bytes:
		d.warnings = append(d.warnings, fmt.Sprintf("%s, which pandas and other programs read, is damaged: it has %d of %d bytes; an intact copy in %s is read instead", f.Path, st.Size(), f.Bytes, versionsDir))
	}
}

// Warnings returns the problems of files so far that did not keep their rows from being read.
func (d *Dataset) Warnings() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

// localFile returns the local path of a file and a writer for its download. If the store is a local
// directory, the path is that of the file itself, and the writer discards its input.
func (d *Dataset) localFile(key, sha string) (string, io.WriteCloser, error) {
	if l, ok := d.store.(sinks.Local); ok {
		return l.LocalPath(key), nopCloser{io.Discard}, nil
	}
	if d.scratch == "" {
		dir, err := os.MkdirTemp("", "tracesmith-dataset-")
		if err != nil {
			return "", nil, fmt.Errorf("making a download directory: %w", err)
		}
		d.scratch = dir
	}
	local := filepath.Join(d.scratch, sha)
	f, err := os.Create(local)
	if err != nil {
		return "", nil, fmt.Errorf("downloading dataset file: %w", err)
	}
	return local, f, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Episodes streams the table episodes in its sort order.
func (d *Dataset) Episodes(ctx context.Context) iter.Seq2[schemas.EpisodeRow, error] {
	return rows[schemas.EpisodeRow](ctx, d, arrowrec.Episodes)
}

// Steps streams the table steps in its sort order.
func (d *Dataset) Steps(ctx context.Context) iter.Seq2[schemas.StepRow, error] {
	return rows[schemas.StepRow](ctx, d, arrowrec.Steps)
}

// Selection returns the selection with which the version was published; nil if it has none.
func (d *Dataset) Selection(ctx context.Context) (*selection.File, error) {
	if d.Manifest.Selection == nil {
		return nil, nil
	}
	var out []schemas.SelectionRow
	for row, err := range rows[schemas.SelectionRow](ctx, d, arrowrec.Selection) {
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return selection.Published(d.Manifest.Selection.Name, d.Manifest, out), nil
}

// DeadLetters returns the jobs that have no episode in this version.
func (d *Dataset) DeadLetters(ctx context.Context) ([]schemas.DeadLetterRow, error) {
	var out []schemas.DeadLetterRow
	for row, err := range rows[schemas.DeadLetterRow](ctx, d, arrowrec.DeadLetters) {
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// DeadLettersKey returns the key of the table of dead letters, for use in messages. It is the key at the
// root if the version is there.
func (d *Dataset) DeadLettersKey() string {
	if d.exposed {
		return exclusionsPath
	}
	return keyBelow(d.base, exclusionsPath)
}

// rows iterates over the rows of a table in key order.
func rows[T any](ctx context.Context, d *Dataset, t *arrowrec.Table) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		files := slices.DeleteFunc(slices.Clone(d.Manifest.Files), func(f schemas.ManifestFile) bool { return f.Table != t.Name })
		slices.SortStableFunc(files, func(a, b schemas.ManifestFile) int { return slices.Compare(a.MinKey, b.MinKey) })
		for _, f := range files {
			local, err := d.File(ctx, f)
			if d.skips(f, err) {
				continue
			}
			if err != nil {
				yield(zero, err)
				return
			}
			for row, err := range formats.Read[T](local, t) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
