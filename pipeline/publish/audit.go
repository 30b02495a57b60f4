package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Problems of an object.
const (
	Damaged = "damaged" // its content changed, or the store cannot return it
	Missing = "missing" // a manifest or pointer names it, but it does not exist
	Surplus = "surplus" // it exists, but nothing names it
)

// Finding is a problem with one object.
type Finding struct {
	Object  string `json:"object"` // its key
	Problem string `json:"problem"`
	Detail  string `json:"detail"`
}

// AuditReport is the result of an audit.
type AuditReport struct {
	URI      string    `json:"uri"`
	Kind     string    `json:"kind"` // dataset or run
	Versions []string  `json:"versions,omitempty"`
	Objects  int       `json:"objects"` // objects read
	Bytes    int64     `json:"bytes"`
	Findings []Finding `json:"findings"` // by object
}

// audit is one audit in progress.
type audit struct {
	store      sinks.Store
	sizes      map[string]int64 // every object of the store
	versioned  map[string]bool  // paths at the root of files of any version
	root       bool             // the manifest of the latest version was read
	unreadable []string         // versions whose manifest cannot be read
	name       string           // of the dataset
	mu         sync.Mutex
	out        AuditReport
}

func newAudit(ctx context.Context, store sinks.Store, kind, prefix string) (*audit, error) {
	a := &audit{store: store, sizes: map[string]int64{}, versioned: map[string]bool{}, out: AuditReport{URI: store.URI(), Kind: kind, Findings: []Finding{}}}
	for o, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing the objects to check: %w", err)
		}
		a.sizes[o.Key] = o.Size
	}
	return a, nil
}

func (a *audit) find(object, problem, detail string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.Findings = append(a.out.Findings, Finding{object, problem, detail})
}

func (a *audit) report() AuditReport {
	slices.SortFunc(a.out.Findings, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.Object, y.Object), strings.Compare(x.Detail, y.Detail))
	})
	return a.out
}

// read calls use with the content of an object. If the object does not exist or
// cannot be read, it records a finding and returns false. It returns an error if the
// whole store fails.
func (a *audit) read(ctx context.Context, key string, use func(io.Reader) error) (bool, error) {
	r, err := a.store.Open(ctx, key)
	if err == nil {
		counted := &counter{r: r}
		err = use(counted)
		_ = r.Close() // it was only read
		a.mu.Lock()
		a.out.Objects++
		a.out.Bytes += counted.n
		a.mu.Unlock()
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, sinks.ErrNotFound):
		a.find(key, Missing, "it does not exist, although another object names it")
		return false, nil
	}
	for _, lerr := range a.store.List(ctx, key) { // does the whole store fail?
		if lerr != nil {
			return false, err
		}
	}
	a.find(key, Damaged, fmt.Sprintf("it cannot be read: %v", err))
	return false, nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// ErrNoDataset means that the location has none of the files that identify a dataset.
var ErrNoDataset = errors.New("no dataset here")

// Audit reads every object of every version of a dataset, and of the copy at its root,
// and compares it with its manifest. A store without versions that has a manifest is
// audited as that version. Problems with the data are findings; an error means that
// the audit failed or that the store contains no dataset.
func Audit(ctx context.Context, store sinks.Store) (AuditReport, error) {
	if err := checkDataset(ctx, store); err != nil {
		return AuditReport{}, err
	}
	a, err := newAudit(ctx, store, "dataset", "")
	if err != nil {
		return AuditReport{}, err
	}
	known := map[string]bool{}
	bases, pointed, err := a.roots(ctx, known)
	if err != nil {
		return AuditReport{}, err
	}
	var files []auditedFile
	for _, base := range bases {
		more, err := a.manifest(ctx, base, pointed[base], known)
		if err != nil {
			return AuditReport{}, err
		}
		files = append(files, more...)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, f := range files {
		g.Go(func() error { return a.file(gctx, f) })
	}
	if err := g.Wait(); err != nil {
		return AuditReport{}, err
	}
	a.surplus(bases, pointed, known)
	return a.report(), nil
}

// checkDataset returns ErrNoDataset unless the store has one of the objects that
// identify a dataset. One is enough, because the others may be damaged or missing.
func checkDataset(ctx context.Context, store sinks.Store) error {
	for _, key := range []string{claimKey, latestKey, manifestKey} {
		r, err := store.Open(ctx, key)
		if err == nil {
			return r.Close()
		}
		if !errors.Is(err, sinks.ErrNotFound) {
			return fmt.Errorf("looking for a dataset: %w", err)
		}
	}
	return fmt.Errorf("%w: %s has no %s: name the directory or prefix given to publish --to", ErrNoDataset, store.URI(), claimKey)
}

// surplus finds objects that nothing names and versions without a manifest. It skips
// the root if latest.json or the manifest that it names cannot be read.
func (a *audit) surplus(bases []string, pointed map[string]string, known map[string]bool) {
	copied := slices.ContainsFunc(bases, func(base string) bool { return strings.HasPrefix(base, versionsDir) })
	for key := range a.sizes {
		if known[key] || copied && !a.root && baseOf(key) == "" || slices.ContainsFunc(a.unreadable, func(base string) bool { return strings.HasPrefix(key, base) }) {
			continue
		}
		detail := "no manifest names it"
		base := baseOf(key)
		switch {
		case base != "" && !slices.Contains(bases, "") && !slices.Contains(bases, base):
			detail = "its version has no manifest: a publish is running or was killed; publish again, or remove it"
			if manifest := base + manifestKey; !known[manifest] {
				known[manifest] = true
				if _, told := pointed[base]; !told {
					a.find(manifest, Missing, "the version has files, but its manifest was lost or is not written yet")
				}
			}
		case base == "" && a.versioned[key]:
			detail = "it belongs to an earlier version: a publish is running or was killed; publish again"
		}
		a.find(key, Surplus, detail)
	}
}

// roots returns the prefixes of the versions ("" if the store is a single version),
// and the manifest hash in latest.json by prefix.
func (a *audit) roots(ctx context.Context, known map[string]bool) (bases []string, pointed map[string]string, err error) {
	pointed = map[string]string{}
	versions := false
	for key := range a.sizes {
		if base := baseOf(key); base != "" {
			versions = true
			if key == base+manifestKey {
				bases = append(bases, base)
			}
		}
	}
	slices.Sort(bases)
	if _, alone := a.sizes[manifestKey]; alone && !versions {
		for _, key := range []string{claimKey, leaseKey, latestKey} { // copies of a dataset's root have them
			known[key] = true
		}
		return []string{""}, pointed, nil
	}
	var c datasetClaim
	if err := a.document(ctx, claimKey, &c); err != nil {
		return nil, nil, err
	}
	if a.name = c.Dataset; a.name != "" && (c.Layout < 1 || c.Layout > layoutVersion) {
		a.find(claimKey, Damaged, fmt.Sprintf("its layout is %d, this program reads 1 to %d", c.Layout, layoutVersion))
	}
	if _, there := a.sizes[leaseKey]; there { // older programs wrote none
		if err := a.document(ctx, leaseKey, new(leaseState)); err != nil {
			return nil, nil, err
		}
	}
	known[claimKey], known[leaseKey], known[latestKey] = true, true, true
	var p schemas.Pointer
	if err := a.document(ctx, latestKey, &p); err != nil || p.Manifest == "" {
		return bases, pointed, err
	}
	base := strings.TrimSuffix(p.Manifest, manifestKey)
	pointed[base] = p.ManifestSHA256
	if base != versionBase(p.Version) && base != p.Version+"/" || a.name != "" && p.Dataset != a.name {
		a.find(latestKey, Damaged, fmt.Sprintf("its dataset %q, version %q and manifest %s do not belong together", p.Dataset, p.Version, p.Manifest))
	}
	if !slices.Contains(bases, base) {
		a.find(p.Manifest, Missing, latestKey+" points at it")
	}
	return bases, pointed, nil
}

// document decodes a small object of canonical JSON.
func (a *audit) document(ctx context.Context, key string, into any) error {
	_, err := a.read(ctx, key, func(r io.Reader) error {
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, into) != nil {
			a.find(key, Damaged, "it is not valid JSON")
			return nil
		}
		if again, err := schemas.CanonicalJSON(into); err == nil && !bytes.Equal(raw, again) {
			a.find(key, Damaged, "it is not as it was written")
		}
		return nil
	})
	return err
}

// auditedFile is a file of a version, or its copy at the root.
type auditedFile struct {
	key string
	schemas.ManifestFile
	copied bool // it is the copy at the root
}

// remedy says how to restore a copy; "" for other files.
func (f auditedFile) remedy(action string) string {
	if !f.copied {
		return ""
	}
	return ": " + action + " to restore it"
}

// manifest checks the manifest below base and returns its files; want is its hash in
// latest.json, "" if it is not the latest.
func (a *audit) manifest(ctx context.Context, base, want string, known map[string]bool) ([]auditedFile, error) {
	key := base + manifestKey
	known[key] = true
	var raw []byte
	ok, err := a.read(ctx, key, func(r io.Reader) (err error) {
		raw, err = io.ReadAll(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(raw)
	if err != nil || !ok {
		if a.unreadable = append(a.unreadable, base); ok {
			a.find(key, Damaged, err.Error())
		}
		return nil, nil
	}
	a.out.Versions = append(a.out.Versions, m.Version)
	again, err := schemas.CanonicalJSON(m)
	switch {
	case err != nil:
		return nil, err
	case want != "" && schemas.HashBytes(raw) != want:
		a.find(key, Damaged, "its SHA-256 is not the one in "+latestKey)
		a.find(latestKey, Damaged, "its SHA-256 is not the manifest's: one of the two was changed")
	case !bytes.Equal(raw, again):
		a.find(key, Damaged, "it is not as it was written")
	case !schemas.Sealed(raw):
		a.find(key, Damaged, errUnsealed.Error())
	case a.name != "" && m.Dataset != a.name:
		a.find(claimKey, Damaged, fmt.Sprintf("it names dataset %q, the manifest of %s %q", a.name, m.Version, m.Dataset))
	case base != "" && path.Base(base) != m.Version:
		a.find(key, Damaged, fmt.Sprintf("it is the manifest of version %s", m.Version))
	case !consistent(m):
		a.find(key, Damaged, "its totals are not the sums of its files")
	}
	var files []auditedFile
	for _, f := range m.Files {
		full := keyBelow(base, f.Path)
		known[full] = true
		files = append(files, auditedFile{full, f, false})
	}
	if strings.HasPrefix(base, versionsDir) {
		files = append(files, a.atRoot(m, raw, want != "", known)...)
	}
	return files, nil
}

// atRoot returns the copies of a version's files at the root, if it is the latest.
func (a *audit) atRoot(m schemas.Manifest, raw []byte, latest bool, known map[string]bool) []auditedFile {
	a.root = a.root || latest
	var files []auditedFile
	own := schemas.ManifestFile{Path: manifestKey, Bytes: int64(len(raw)), SHA256: schemas.HashBytes(raw)}
	for _, f := range append(slices.Clone(m.Files), own) {
		if a.versioned[f.Path] = true; latest {
			known[f.Path] = true
			files = append(files, auditedFile{f.Path, f, true})
		}
	}
	return files
}

// consistent reports whether the totals are the sums of the tables' rows.
func consistent(m schemas.Manifest) bool {
	rows := map[string]int64{}
	for _, f := range m.Files {
		rows[f.Table] += f.Rows
	}
	return rows["episodes"] == int64(m.Totals.Episodes) && rows["steps"] == m.Totals.Steps
}

// file compares an object with its manifest entry.
func (a *audit) file(ctx context.Context, f auditedFile) error {
	if _, ok := a.sizes[f.key]; !ok {
		a.find(f.key, Missing, "the manifest names it, but it does not exist"+f.remedy("publish again"))
		return nil
	}
	h := sha256.New()
	var n int64
	ok, err := a.read(ctx, f.key, func(r io.Reader) (err error) {
		n, err = io.Copy(h, r)
		return err
	})
	if err != nil || !ok {
		return err
	}
	switch {
	case n != f.Bytes:
		a.find(f.key, Damaged, fmt.Sprintf("it has %d bytes, but %d in the manifest%s", n, f.Bytes, f.remedy("delete it and publish again")))
	case hex.EncodeToString(h.Sum(nil)) != f.SHA256:
		a.find(f.key, Damaged, "its SHA-256 is not the manifest's"+f.remedy("delete it and publish again"))
	}
	return nil
}
