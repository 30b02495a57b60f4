package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// claimed is dataset.json: whose place this is.
type claimed struct {
	Dataset string `json:"dataset"`
	Layout  int    `json:"layout"`
}

// Look reports whether dest already holds the dataset of that name. A place that
// is neither that nor empty is ErrOccupied; an impossible name is ErrName. It writes nothing.
func Look(ctx context.Context, dest sinks.Store, name string) (ours bool, err error) {
	raw, err := look(ctx, dest, name)
	return raw != nil, err
}

// look is Look, and returns dataset.json; nil for an empty place.
func look(ctx context.Context, dest sinks.Store, name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	have, err := dest.Get(ctx, claimKey)
	if errors.Is(err, sinks.ErrNotFound) {
		for o, failing := range dest.List(ctx, "") {
			if failing != nil {
				return nil, fmt.Errorf("looking into the destination: %w", failing)
			}
			if have, err = dest.Get(ctx, claimKey); errors.Is(err, sinks.ErrNotFound) { // else another publisher has just claimed it
				return nil, fmt.Errorf("%w: %s holds %s and is not a tracesmith dataset: choose an empty place", ErrOccupied, dest.URI(), o.Key)
			}
			break
		}
		if errors.Is(err, sinks.ErrNotFound) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking into the destination: %w", err)
	}
	var c claimed
	if err := json.Unmarshal(have, &c); err != nil || c.Dataset == "" {
		return nil, fmt.Errorf("%w: %s/%s is not ours: choose an empty place", ErrOccupied, dest.URI(), claimKey)
	}
	if c.Dataset != name || c.Layout < 1 || c.Layout > layoutVersion {
		return nil, fmt.Errorf("%w: %s holds dataset %q (layout %d), not %q: choose another place or the same name", ErrOccupied, dest.URI(), c.Dataset, c.Layout, name)
	}
	return have, nil
}

// claim makes dest the place of the dataset of that name, once the store has
// proved that it can commit safely. A place of an earlier layout becomes one of this
// layout, so that programs that know only the earlier one no longer publish there.
func claim(ctx context.Context, dest sinks.Store, name string) error {
	raw, err := schemas.CanonicalJSON(claimed{Dataset: name, Layout: layoutVersion})
	if err != nil {
		return err
	}
	have, err := look(ctx, dest, name)
	switch {
	case err != nil || bytes.Equal(have, raw):
		return err
	case have != nil:
		err = dest.Swap(ctx, claimKey, have, raw)
	default:
		if err := dest.Probe(ctx); err != nil {
			return err
		}
		err = dest.Create(ctx, claimKey, raw)
	}
	if errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrChanged) { // another publisher was first
		_, err = look(ctx, dest, name)
		return err
	}
	if err != nil {
		return fmt.Errorf("claiming the destination: %w", err)
	}
	return nil
}

// published finds the manifest of this version, if an earlier call or another
// publisher committed it.
func (p *publication) published(ctx context.Context) (schemas.Manifest, bool, error) {
	raw, err := p.cfg.Dest.Get(ctx, p.key(manifestKey))
	if errors.Is(err, sinks.ErrNotFound) {
		return schemas.Manifest{}, false, nil
	}
	if err != nil {
		return schemas.Manifest{}, false, fmt.Errorf("looking for an earlier publish: %w", err)
	}
	m, err := decodeManifest(raw)
	if err != nil {
		return m, false, fmt.Errorf("%w: %s/%s is damaged (%w): delete it and publish again", ErrOccupied, p.cfg.Dest.URI(), p.key(manifestKey), err)
	}
	return m, true, nil
}

// lookBack learns which files the latest version has. They save uploads and no
// more, so that what cannot be read is no error.
func (p *publication) lookBack(ctx context.Context) {
	var at schemas.Pointer
	if json.Unmarshal(p.latest, &at) != nil {
		return
	}
	raw, err := p.cfg.Dest.Get(ctx, at.Manifest)
	if err != nil || schemas.HashBytes(raw) != at.ManifestSHA256 {
		return
	}
	m, err := decodeManifest(raw)
	if err != nil {
		return
	}
	p.prior = map[string]string{}
	for _, f := range m.Files {
		p.prior[f.SHA256] = keyBelow(strings.TrimSuffix(at.Manifest, manifestKey), f.Path)
	}
}

// takeOver copies a file from the latest version, if it is there and still
// what it was.
func (p *publication) takeOver(ctx context.Context, f schemas.ManifestFile) (bool, error) {
	from, ok := p.prior[f.SHA256]
	if !ok || p.cfg.Dest.Copy(ctx, from, p.key(f.Path)) != nil {
		return false, ctx.Err() // the upload will tell
	}
	head, err := p.cfg.Dest.Head(ctx, p.key(f.Path))
	if err == nil && head.SHA256 == f.SHA256 && head.Size == f.Bytes {
		p.copied++
		return true, nil
	}
	if err = p.cfg.Dest.Delete(ctx, p.key(f.Path)); err != nil {
		err = fmt.Errorf("removing a damaged copy: %w", err)
	}
	return false, err
}

// upload puts a shard in place; one that is there already must be the same.
func (p *publication) upload(ctx context.Context, f builtFile) error {
	if done, err := p.takeOver(ctx, f.entry); done || err != nil {
		return err
	}
	err := p.cfg.Dest.CreateFile(ctx, p.key(f.entry.Path), f.local)
	return p.adopt(ctx, f.entry, err)
}

func (p *publication) uploadText(ctx context.Context, t textFile) error {
	return p.adopt(ctx, t.entry(), p.cfg.Dest.Create(ctx, p.key(t.path), t.body))
}

// adopt settles the creation of a file: made now, or there already with the
// same hash and size.
func (p *publication) adopt(ctx context.Context, f schemas.ManifestFile, err error) error {
	if err == nil {
		p.uploaded++
		return nil
	}
	if !errors.Is(err, sinks.ErrExists) {
		return fmt.Errorf("uploading: %w", err)
	}
	head, err := p.cfg.Dest.Head(ctx, p.key(f.Path))
	if err != nil {
		return fmt.Errorf("checking what is there: %w", err)
	}
	if head.SHA256 != f.SHA256 || head.Size != f.Bytes {
		return fmt.Errorf("%s/%s has other content than this publish made: %w: delete it and publish again", p.cfg.Dest.URI(), p.key(f.Path), ErrConflict)
	}
	return nil
}

// checkListing compares the store's own listing with what will be committed.
func (p *publication) checkListing(ctx context.Context, m schemas.Manifest) error {
	sizes := map[string]int64{}
	for o, err := range p.cfg.Dest.List(ctx, versionBase(p.version)) {
		if err != nil {
			return fmt.Errorf("checking the upload: %w", err)
		}
		sizes[o.Key] = o.Size
	}
	for _, f := range m.Files {
		if size, ok := sizes[p.key(f.Path)]; !ok || size != f.Bytes {
			return fmt.Errorf("checking the upload: %s/%s has %d bytes, want %d: publish again", p.cfg.Dest.URI(), p.key(f.Path), size, f.Bytes)
		}
	}
	return nil
}

// commit writes the manifest; whoever comes second finds equal bytes.
func (p *publication) commit(ctx context.Context, m schemas.Manifest) error {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return err
	}
	err = p.cfg.Dest.Create(ctx, p.key(manifestKey), raw)
	if !errors.Is(err, sinks.ErrExists) {
		return err
	}
	have, err := p.cfg.Dest.Get(ctx, p.key(manifestKey))
	if err != nil {
		return fmt.Errorf("reading the other publisher's manifest: %w", err)
	}
	if !bytes.Equal(have, raw) {
		return fmt.Errorf("%s/%s was committed with other content: %w: publish to another place", p.cfg.Dest.URI(), p.key(manifestKey), ErrConflict)
	}
	return nil
}

// pointer reads latest.json; nil if there is none.
func (p *publication) pointer(ctx context.Context) ([]byte, error) {
	have, err := p.cfg.Dest.Get(ctx, latestKey)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pointer to the latest version: %w", err)
	}
	return have, nil
}

// pointerTo is what latest.json holds when m is the latest version.
func (p *publication) pointerTo(m schemas.Manifest) ([]byte, error) {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return nil, err
	}
	return schemas.CanonicalJSON(schemas.Pointer{
		Dataset: m.Dataset, Version: m.Version, Manifest: p.key(manifestKey), ManifestSHA256: schemas.HashBytes(raw),
	})
}

func (p *publication) isLatest(ctx context.Context, m schemas.Manifest) bool {
	want, err := p.pointerTo(m)
	if err != nil {
		return false
	}
	have, err := p.pointer(ctx)
	return err == nil && bytes.Equal(have, want)
}

// point makes this version the latest, if the pointer is still what it was when
// this publisher's turn began.
func (p *publication) point(ctx context.Context, m schemas.Manifest) error {
	want, err := p.pointerTo(m)
	switch {
	case err != nil || bytes.Equal(p.latest, want):
		return err
	case p.latest == nil:
		err = p.cfg.Dest.Create(ctx, latestKey, want)
	default:
		err = p.cfg.Dest.Swap(ctx, latestKey, p.latest, want)
	}
	if errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrChanged) {
		return fmt.Errorf("pointing at the new version: %w: %w: publish again to make %s the latest", ErrLeaseLost, err, m.Version)
	}
	if err != nil {
		return fmt.Errorf("pointing at the new version: %w", err)
	}
	return nil
}

// decodeManifest reads a manifest that is to be relied on.
func decodeManifest(raw []byte) (schemas.Manifest, error) {
	m, err := parseManifest(raw)
	if err == nil && !schemas.Sealed(raw) {
		err = errUnsealed
	}
	return m, err
}

var errUnsealed = errors.New("it was changed: it is not what its self_sha256 says")

func parseManifest(raw []byte) (schemas.Manifest, error) {
	var m schemas.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("not a manifest: %w", err)
	}
	if m.ManifestVersion < 1 || m.ManifestVersion > manifestVersion {
		return m, fmt.Errorf("manifest version %d, this program reads 1 to %d: use a matching version of tracesmith", m.ManifestVersion, manifestVersion)
	}
	return m, nil
}
