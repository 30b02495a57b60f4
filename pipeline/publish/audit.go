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

// Finding is a problem with one object of a store.
type Finding struct {
	Object  string `json:"object"` // key of the object
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
	Findings []Finding `json:"findings"` // sorted by object
}

type audit struct {
	store      sinks.Store
	sizes      map[string]int64 // every object of the store
	versioned  map[string]bool  // paths of the files of all versions
	latestRead bool             // whether the manifest of the latest version was read
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

func (a *audit) addFinding(object, problem, detail string) {
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
		reader := &countingReader{r: r}
		err = use(reader)
		_ = r.Close() // an error does not matter, because the object was only read
		a.mu.Lock()
		a.out.Objects++
		a.out.Bytes += reader.n
		a.mu.Unlock()
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, sinks.ErrNotFound):
		a.addFinding(key, Missing, "it does not exist, although another object names it")
		return false, nil
	}
	for _, lerr := range a.store.List(ctx, key) { // fails only if the whole store fails
		if lerr != nil {
			return false, err
		}
	}
	a.addFinding(key, Damaged, fmt.Sprintf("it cannot be read: %v", err))
	return false, nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
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
	expected := map[string]bool{}
	bases, latestHash, err := a.findVersions(ctx, expected)
	if err != nil {
		return AuditReport{}, err
	}
	var files []auditedFile
	for _, base := range bases {
		more, err := a.checkManifest(ctx, base, latestHash[base], expected)
		if err != nil {
			return AuditReport{}, err
		}
		files = append(files, more...)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, f := range files {
		g.Go(func() error { return a.checkFile(gctx, f) })
	}
	if err := g.Wait(); err != nil {
		return AuditReport{}, err
	}
	a.findSurplus(bases, latestHash, expected)
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

// findSurplus adds findings for objects that are not expected and for versions without a
// manifest. It skips the root if latest.json or the manifest that it names cannot be read.
func (a *audit) findSurplus(bases []string, latestHash map[string]string, expected map[string]bool) {
	hasRootCopy := slices.ContainsFunc(bases, func(base string) bool { return strings.HasPrefix(base, versionsDir) })
	for key := range a.sizes {
		if expected[key] || hasRootCopy && !a.latestRead && baseOf(key) == "" || slices.ContainsFunc(a.unreadable, func(base string) bool { return strings.HasPrefix(key, base) }) {
			continue
		}
		detail := "no manifest lists it"
		base := baseOf(key)
		switch {
		case base != "" && !slices.Contains(bases, "") && !slices.Contains(bases, base):
			detail = "its version has no manifest: a publish is running or was killed; publish again, or remove it"
			if manifest := base + manifestKey; !expected[manifest] {
				expected[manifest] = true
				if _, isLatest := latestHash[base]; !isLatest {
					a.addFinding(manifest, Missing, "the version has files, but its manifest was lost or is not written yet")
				}
			}
		case base == "" && a.versioned[key]:
			detail = "it belongs to an earlier version: a publish is running or was killed; publish again"
		}
		a.addFinding(key, Surplus, detail)
	}
}

// findVersions returns the prefixes of the versions ("" if the store is a single version).
// latestHash maps the prefix of the latest version to the hash of its manifest in
// latest.json. findVersions also checks the documents at the root and adds them to expected.
func (a *audit) findVersions(ctx context.Context, expected map[string]bool) (bases []string, latestHash map[string]string, err error) {
	latestHash = map[string]string{}
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
	if _, isSingle := a.sizes[manifestKey]; isSingle && !versions {
		for _, key := range []string{claimKey, leaseKey, latestKey, MarksKey} { // a copy of a dataset's root may have them
			expected[key] = true
		}
		return []string{""}, latestHash, nil
	}
	var c datasetClaim
	if err := a.readJSON(ctx, claimKey, &c); err != nil {
		return nil, nil, err
	}
	if a.name = c.Dataset; a.name != "" && (c.Layout < 1 || c.Layout > layoutVersion) {
		a.addFinding(claimKey, Damaged, fmt.Sprintf("its layout is %d, but this program reads 1 to %d", c.Layout, layoutVersion))
	}
	if _, exists := a.sizes[leaseKey]; exists { // older programs did not write one
		if err := a.readJSON(ctx, leaseKey, new(leaseState)); err != nil {
			return nil, nil, err
		}
	}
	expected[claimKey], expected[leaseKey], expected[latestKey], expected[MarksKey] = true, true, true, true
	var p schemas.Pointer
	if err := a.readJSON(ctx, latestKey, &p); err != nil || p.Manifest == "" {
		return bases, latestHash, err
	}
	base := strings.TrimSuffix(p.Manifest, manifestKey)
	latestHash[base] = p.ManifestSHA256
	if base != versionBase(p.Version) && base != p.Version+"/" || a.name != "" && p.Dataset != a.name {
		a.addFinding(latestKey, Damaged, fmt.Sprintf("its dataset %q, version %q and manifest %s do not belong together", p.Dataset, p.Version, p.Manifest))
	}
	if !slices.Contains(bases, base) {
		a.addFinding(p.Manifest, Missing, latestKey+" points at it")
	}
	return bases, latestHash, nil
}

// readJSON decodes a small object, which must be canonical JSON. Problems are findings.
func (a *audit) readJSON(ctx context.Context, key string, v any) error {
	_, err := a.read(ctx, key, func(r io.Reader) error {
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, v) != nil {
			a.addFinding(key, Damaged, "it is not valid JSON")
			return nil
		}
		if canonical, err := schemas.CanonicalJSON(v); err == nil && !bytes.Equal(raw, canonical) {
			a.addFinding(key, Damaged, "it was changed: it is not canonical JSON")
		}
		return nil
	})
	return err
}

// auditedFile is a file of a version, or the copy of such a file at the root.
type auditedFile struct {
	key string
	schemas.ManifestFile
	isCopy bool // whether it is the copy at the root
}

// remedy returns how to restore a copy, for the end of a message; "" for other files.
func (f auditedFile) remedy(action string) string {
	if !f.isCopy {
		return ""
	}
	return ": " + action + ", or download the dataset again, to restore it"
}

// checkManifest checks the manifest of the version with the prefix base, and returns the
// files to check. want is the hash of the manifest in latest.json, or "" if this is not the
// latest version.
func (a *audit) checkManifest(ctx context.Context, base, want string, expected map[string]bool) ([]auditedFile, error) {
	key := base + manifestKey
	expected[key] = true
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
			a.addFinding(key, Damaged, err.Error())
		}
		return nil, nil
	}
	a.out.Versions = append(a.out.Versions, m.Version)
	canonical, err := schemas.CanonicalJSON(m)
	switch {
	case err != nil:
		return nil, err
	case want != "" && schemas.HashBytes(raw) != want:
		a.addFinding(key, Damaged, "its SHA-256 is not the one in "+latestKey)
		a.addFinding(latestKey, Damaged, "its SHA-256 is not that of the manifest: one of the two was changed")
	case !bytes.Equal(raw, canonical):
		a.addFinding(key, Damaged, "it was changed: it is not canonical JSON")
	case !schemas.VerifySeal(raw):
		a.addFinding(key, Damaged, errUnsealed.Error())
	case a.name != "" && m.Dataset != a.name:
		a.addFinding(claimKey, Damaged, fmt.Sprintf("it names dataset %q, but the manifest of version %s names %q", a.name, m.Version, m.Dataset))
	case base != "" && path.Base(base) != m.Version:
		a.addFinding(key, Damaged, fmt.Sprintf("it is the manifest of version %s", m.Version))
	case !totalsMatch(m):
		a.addFinding(key, Damaged, "its totals are not the sums of its files")
	}
	var files []auditedFile
	for _, f := range m.Files {
		full := keyBelow(base, f.Path)
		expected[full] = true
		files = append(files, auditedFile{full, f, false})
	}
	if strings.HasPrefix(base, versionsDir) {
		files = append(files, a.rootCopies(m, raw, want != "", expected)...)
	}
	return files, nil
}

// rootCopies returns the copies of a version's files at the root, if the version is the latest.
func (a *audit) rootCopies(m schemas.Manifest, raw []byte, latest bool, expected map[string]bool) []auditedFile {
	a.latestRead = a.latestRead || latest
	var files []auditedFile
	manifestFile := schemas.ManifestFile{Path: manifestKey, Bytes: int64(len(raw)), SHA256: schemas.HashBytes(raw)}
	for _, f := range append(slices.Clone(m.Files), manifestFile) {
		if a.versioned[f.Path] = true; latest {
			expected[f.Path] = true
			files = append(files, auditedFile{f.Path, f, true})
		}
	}
	return files
}

// totalsMatch reports whether the totals of a manifest are the sums over its files.
func totalsMatch(m schemas.Manifest) bool {
	rows := map[string]int64{}
	for _, f := range m.Files {
		rows[f.Table] += f.Rows
	}
	return rows["episodes"] == int64(m.Totals.Episodes) && rows["steps"] == m.Totals.Steps
}

// checkFile compares an object with its manifest entry.
func (a *audit) checkFile(ctx context.Context, f auditedFile) error {
	if _, ok := a.sizes[f.key]; !ok {
		a.addFinding(f.key, Missing, "the manifest lists it, but it does not exist"+f.remedy("publish again"))
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
		a.addFinding(f.key, Damaged, fmt.Sprintf("it has %d bytes, but %d in the manifest%s", n, f.Bytes, f.remedy("delete it and publish again")))
	case hex.EncodeToString(h.Sum(nil)) != f.SHA256:
		a.addFinding(f.key, Damaged, "its SHA-256 is not the one in the manifest"+f.remedy("delete it and publish again"))
	}
	return nil
}
