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

// What can be wrong with an object.
const (
	Damaged = "damaged" // it is not what was written, or its server does not give it out
	Missing = "missing" // something names it and it is not there
	Surplus = "surplus" // it is there and nothing names it
)

// Finding is one object with which something is wrong.
type Finding struct {
	Object  string `json:"object"` // its key below the place
	Problem string `json:"problem"`
	Detail  string `json:"detail"`
}

// Audited is what an audit has looked at and found.
type Audited struct {
	URI      string    `json:"uri"`
	Kind     string    `json:"kind"` // dataset or run
	Versions []string  `json:"versions,omitempty"`
	Objects  int       `json:"objects"` // that were read
	Bytes    int64     `json:"bytes"`
	Findings []Finding `json:"findings"` // by object
}

// audit collects findings from several goroutines.
type audit struct {
	store sinks.Store
	sizes map[string]int64 // every object that the store lists
	older map[string]bool  // the files of versions, as they are called at the root
	root  bool             // the manifest of the version at the root was read
	blind []string         // versions whose manifest says nothing about their files
	name  string           // of the dataset
	mu    sync.Mutex
	out   Audited
}

func newAudit(ctx context.Context, store sinks.Store, kind, prefix string) (*audit, error) {
	a := &audit{store: store, sizes: map[string]int64{}, older: map[string]bool{}, out: Audited{URI: store.URI(), Kind: kind, Findings: []Finding{}}}
	for o, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing what is to be checked: %w", err)
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

func (a *audit) report() Audited {
	slices.SortFunc(a.out.Findings, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.Object, y.Object), strings.Compare(x.Detail, y.Detail))
	})
	return a.out
}

// read hands an object to use; false if it is not there or not given out, which
// is a finding. A store that answers nothing at all is an error.
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
		a.find(key, Missing, "it is named and is not there")
		return false, nil
	}
	for _, lerr := range a.store.List(ctx, key) { // is it the object or the whole store?
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

// ErrNoDataset: there is nothing at the location that says it is a dataset.
var ErrNoDataset = errors.New("no dataset here")

// Audit reads every object of every version of a dataset, and the copy of the latest
// version at its root, in place, and compares it with its manifest. A store without
// versions that has a manifest is audited as that version. An error means that Audit
// could not look, or that the store holds no dataset, in which case nothing of it is
// listed; what is wrong with the data is in the findings.
func Audit(ctx context.Context, store sinks.Store) (Audited, error) {
	if err := checkDataset(ctx, store); err != nil {
		return Audited{}, err
	}
	a, err := newAudit(ctx, store, "dataset", "")
	if err != nil {
		return Audited{}, err
	}
	known := map[string]bool{}
	bases, pointed, err := a.roots(ctx, known)
	if err != nil {
		return Audited{}, err
	}
	var files []stored
	for _, base := range bases {
		more, err := a.manifest(ctx, base, pointed[base], known)
		if err != nil {
			return Audited{}, err
		}
		files = append(files, more...)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, f := range files {
		g.Go(func() error { return a.file(gctx, f) })
	}
	if err := g.Wait(); err != nil {
		return Audited{}, err
	}
	a.surplus(bases, pointed, known)
	return a.report(), nil
}

// checkDataset looks for the objects by which a dataset is known. Any one will do:
// the others may be what is wrong with it.
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

// surplus finds the objects that nothing names, and versions without a manifest. It
// does not judge the root if latest.json or the manifest that it names cannot be read.
func (a *audit) surplus(bases []string, pointed map[string]string, known map[string]bool) {
	copied := slices.ContainsFunc(bases, func(base string) bool { return strings.HasPrefix(base, versionsDir) })
	for key := range a.sizes {
		if known[key] || copied && !a.root && baseOf(key) == "" || slices.ContainsFunc(a.blind, func(base string) bool { return strings.HasPrefix(key, base) }) {
			continue
		}
		detail := "no manifest names it"
		base := baseOf(key)
		switch {
		case base != "" && !slices.Contains(bases, "") && !slices.Contains(bases, base):
			detail = "its version has no manifest: a publish has not ended or was killed; publish again, or remove it"
			if manifest := base + manifestKey; !known[manifest] {
				known[manifest] = true
				if _, told := pointed[base]; !told {
					a.find(manifest, Missing, "there are files of this version: the manifest was lost, or was not written yet")
				}
			}
		case base == "" && a.older[key]:
			detail = "it belongs to an earlier version: a publish has not ended or was killed; publish again"
		}
		a.find(key, Surplus, detail)
	}
}

// roots finds the versions ("" for a store that is one), and which manifest hash
// the pointer wants.
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
		for _, key := range []string{claimKey, leaseKey, latestKey} { // a copy of a root has them
			known[key] = true
		}
		return []string{""}, pointed, nil
	}
	var c claimed
	if err := a.document(ctx, claimKey, &c); err != nil {
		return nil, nil, err
	}
	if a.name = c.Dataset; a.name != "" && (c.Layout < 1 || c.Layout > layoutVersion) {
		a.find(claimKey, Damaged, fmt.Sprintf("its layout is %d, this program reads 1 to %d", c.Layout, layoutVersion))
	}
	if _, there := a.sizes[leaseKey]; there { // older versions of the program wrote none
		if err := a.document(ctx, leaseKey, new(leased)); err != nil {
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
		a.find(latestKey, Damaged, fmt.Sprintf("it names dataset %q, version %q and manifest %s, which do not belong together", p.Dataset, p.Version, p.Manifest))
	}
	if !slices.Contains(bases, base) {
		a.find(p.Manifest, Missing, latestKey+" points at it")
	}
	return bases, pointed, nil
}

// document reads a small object of canonical JSON.
func (a *audit) document(ctx context.Context, key string, into any) error {
	_, err := a.read(ctx, key, func(r io.Reader) error {
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, into) != nil {
			a.find(key, Damaged, "it is no JSON document")
			return nil
		}
		if again, err := schemas.CanonicalJSON(into); err == nil && !bytes.Equal(raw, again) {
			a.find(key, Damaged, "it is not as it was written")
		}
		return nil
	})
	return err
}

// stored is a file of a version with its full key.
type stored struct {
	key string
	schemas.ManifestFile
	copied bool // from its version, to the root
}

// remedy says what restores a copy.
func (f stored) remedy(action string) string {
	if !f.copied {
		return ""
	}
	return ": " + action + " to restore it"
}

// manifest checks the manifest below base and lists its files; want is its hash,
// "" if nothing names it.
func (a *audit) manifest(ctx context.Context, base, want string, known map[string]bool) ([]stored, error) {
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
		if a.blind = append(a.blind, base); ok {
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
		a.find(latestKey, Damaged, "it names another SHA-256 than the manifest has: one of the two was changed")
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
	var files []stored
	for _, f := range m.Files {
		full := keyBelow(base, f.Path)
		known[full] = true
		files = append(files, stored{full, f, false})
	}
	if strings.HasPrefix(base, versionsDir) {
		files = append(files, a.atRoot(m, raw, want != "", known)...)
	}
	return files, nil
}

// atRoot lists what a version has at the root of its dataset: all of its files, if it
// is the latest.
func (a *audit) atRoot(m schemas.Manifest, raw []byte, latest bool, known map[string]bool) []stored {
	a.root = a.root || latest
	var files []stored
	own := schemas.ManifestFile{Path: manifestKey, Bytes: int64(len(raw)), SHA256: schemas.HashBytes(raw)}
	for _, f := range append(slices.Clone(m.Files), own) {
		if a.older[f.Path] = true; latest {
			known[f.Path] = true
			files = append(files, stored{f.Path, f, true})
		}
	}
	return files
}

// consistent adds up the rows of the tables.
func consistent(m schemas.Manifest) bool {
	rows := map[string]int64{}
	for _, f := range m.Files {
		rows[f.Table] += f.Rows
	}
	return rows["episodes"] == int64(m.Totals.Episodes) && rows["steps"] == m.Totals.Steps
}

// file compares an object with its entry.
func (a *audit) file(ctx context.Context, f stored) error {
	if _, ok := a.sizes[f.key]; !ok {
		a.find(f.key, Missing, "the manifest names it and it is not there"+f.remedy("publish again"))
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
		a.find(f.key, Damaged, fmt.Sprintf("it has %d bytes, the manifest says %d%s", n, f.Bytes, f.remedy("delete it and publish again")))
	case hex.EncodeToString(h.Sum(nil)) != f.SHA256:
		a.find(f.key, Damaged, "its SHA-256 is not the manifest's"+f.remedy("delete it and publish again"))
	}
	return nil
}
