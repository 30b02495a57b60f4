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

// findManifest returns the manifest of this version if an earlier call or another
// publisher has committed it.
func (p *publication) findManifest(ctx context.Context) (schemas.Manifest, bool, error) {
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

// readLatestFiles fills p.prior with the files of the latest version, so that equal files
// can be copied instead of uploaded. It ignores errors, because uploading always works.
func (p *publication) readLatestFiles(ctx context.Context) {
	var pointer schemas.Pointer
	if json.Unmarshal(p.latest, &pointer) != nil {
		return
	}
	raw, err := p.cfg.Dest.Get(ctx, pointer.Manifest)
	if err != nil || schemas.HashBytes(raw) != pointer.ManifestSHA256 {
		return
	}
	m, err := decodeManifest(raw)
	if err != nil {
		return
	}
	p.prior = map[string]string{}
	for _, f := range m.Files {
		p.prior[f.SHA256] = keyBelow(strings.TrimSuffix(pointer.Manifest, manifestKey), f.Path)
	}
}

// copyFromLatest copies a file from the latest version. It returns false if that version
// does not have the file, or if the copy is damaged.
func (p *publication) copyFromLatest(ctx context.Context, f schemas.ManifestFile) (bool, error) {
	from, ok := p.prior[f.SHA256]
	if !ok || p.cfg.Dest.Copy(ctx, from, p.key(f.Path)) != nil {
		return false, ctx.Err() // the upload that follows reports any error of the store
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

// upload stores a shard. If the object exists already, it must be equal.
func (p *publication) upload(ctx context.Context, f builtFile) error {
	if done, err := p.copyFromLatest(ctx, f.entry); done || err != nil {
		return err
	}
	err := p.cfg.Dest.CreateFile(ctx, p.key(f.entry.Path), f.local)
	return p.confirm(ctx, f.entry, err)
}

// uploadText stores a text file. If the object exists already, it must be equal.
func (p *publication) uploadText(ctx context.Context, t textFile) error {
	return p.confirm(ctx, t.entry(), p.cfg.Dest.Create(ctx, p.key(t.path), t.body))
}

// confirm interprets the error from creating a file. It is not an error if the file exists
// with the same hash and size.
func (p *publication) confirm(ctx context.Context, f schemas.ManifestFile, err error) error {
	if err == nil {
		p.uploaded++
		return nil
	}
	if !errors.Is(err, sinks.ErrExists) {
		return fmt.Errorf("uploading: %w", err)
	}
	head, err := p.cfg.Dest.Head(ctx, p.key(f.Path))
	if err != nil {
		return fmt.Errorf("checking the existing file: %w", err)
	}
	if head.SHA256 != f.SHA256 || head.Size != f.Bytes {
		return fmt.Errorf("%s/%s differs from the file that this publish wrote: %w: delete it and publish again", p.cfg.Dest.URI(), p.key(f.Path), ErrConflict)
	}
	return nil
}

// checkListing compares the store's listing with the manifest before the commit.
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

// commit writes the manifest. If another publisher was first, its manifest must be equal.
func (p *publication) commit(ctx context.Context, m schemas.Manifest) error {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return err
	}
	err = p.cfg.Dest.Create(ctx, p.key(manifestKey), raw)
	if !errors.Is(err, sinks.ErrExists) {
		return err
	}
	current, err := p.cfg.Dest.Get(ctx, p.key(manifestKey))
	if err != nil {
		return fmt.Errorf("reading the other publisher's manifest: %w", err)
	}
	if !bytes.Equal(current, raw) {
		return fmt.Errorf("%s/%s was committed with different content: %w: publish to another place", p.cfg.Dest.URI(), p.key(manifestKey), ErrConflict)
	}
	return nil
}
