package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// readLatest returns the content of latest.json; nil if there is none.
func (p *publication) readLatest(ctx context.Context) ([]byte, error) {
	current, err := p.cfg.Dest.Get(ctx, latestKey)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pointer to the latest version: %w", err)
	}
	return current, nil
}

// pointerTo returns the content of latest.json if m is the latest version.
func (p *publication) pointerTo(m schemas.Manifest) ([]byte, error) {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return nil, err
	}
	return schemas.CanonicalJSON(schemas.Pointer{
		Dataset: m.Dataset, Version: m.Version, Manifest: p.key(manifestKey), ManifestSHA256: schemas.HashBytes(raw),
	})
}

// isLatest reports whether latest.json points at m. It returns false if that cannot be read.
func (p *publication) isLatest(ctx context.Context, m schemas.Manifest) bool {
	want, err := p.pointerTo(m)
	if err != nil {
		return false
	}
	current, err := p.readLatest(ctx)
	return err == nil && bytes.Equal(current, want)
}

// setLatest makes latest.json point at this version. It fails if latest.json has changed
// since this publisher acquired the lease.
func (p *publication) setLatest(ctx context.Context, m schemas.Manifest) error {
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
