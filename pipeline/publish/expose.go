package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// isExposed reports whether the root has the files of m with the sizes in m, and no
// file of another version.
func (p *publication) isExposed(ctx context.Context, m schemas.Manifest) (bool, error) {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return false, err
	}
	have, err := p.cfg.Dest.Get(ctx, manifestKey)
	if errors.Is(err, sinks.ErrNotFound) || err == nil && !bytes.Equal(have, raw) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("checking the files at the root: %w", err)
	}
	sizes, manifests, err := p.atRoot(ctx)
	if err != nil {
		return false, err
	}
	for _, f := range m.Files {
		if size, ok := sizes[f.Path]; !ok || size != f.Bytes {
			return false, nil
		}
	}
	old, err := p.supersededFiles(ctx, m, sizes, manifests)
	return len(old) == 0, err
}

// expose copies the files of the latest version to the root, where loaders and people
// look for them, and removes files of earlier versions there. It writes the card after
// the files that the card names, and the manifest last, so that the next publish
// notices and completes an interrupted call. The versions themselves do not change.
func (p *publication) expose(ctx context.Context, m schemas.Manifest) error {
	if done, err := p.isExposed(ctx, m); err != nil || done {
		return err
	}
	if err := p.cfg.Dest.Delete(ctx, manifestKey); err != nil {
		return fmt.Errorf("putting the version at the root: %w", err)
	}
	files := slices.Clone(m.Files)
	slices.SortStableFunc(files, func(a, b schemas.ManifestFile) int { return rank(a.Path) - rank(b.Path) })
	for _, f := range files {
		if err := p.exposeFile(ctx, f); err != nil {
			return fmt.Errorf("putting %s at the root: %w", f.Path, err)
		}
	}
	sizes, manifests, err := p.atRoot(ctx)
	if err != nil {
		return err
	}
	old, err := p.supersededFiles(ctx, m, sizes, manifests)
	if err != nil {
		return err
	}
	if !p.isLatest(ctx, m) { // this process was suspended and another publisher took over
		return fmt.Errorf("putting the version at the root: %w", ErrLeaseLost)
	}
	for _, key := range old {
		if err := p.cfg.Dest.Delete(ctx, key); err != nil {
			return fmt.Errorf("removing a file of an earlier version from the root: %w", err)
		}
	}
	if err := p.cfg.Dest.Copy(ctx, p.key(manifestKey), manifestKey); err != nil {
		return fmt.Errorf("putting the manifest at the root: %w", err)
	}
	return nil
}

// rank sorts the card after the files that it names.
func rank(file string) int {
	if file == cardKey {
		return 1
	}
	return 0
}

// exposeFile makes the object at the root equal to f. Another publisher may do the
// same at the same time.
func (p *publication) exposeFile(ctx context.Context, f schemas.ManifestFile) error {
	dest := p.cfg.Dest
	head, err := dest.Head(ctx, f.Path)
	switch {
	case errors.Is(err, sinks.ErrNotFound):
		return dest.Copy(ctx, p.key(f.Path), f.Path)
	case err != nil || head.SHA256 == f.SHA256 && head.Size == f.Bytes:
		return err
	}
	old, err := dest.Get(ctx, f.Path)
	if err != nil {
		return err
	}
	body, err := dest.Get(ctx, p.key(f.Path))
	if err != nil {
		return err
	}
	return dest.Swap(ctx, f.Path, old, body)
}

// atRoot returns the objects at the root with their sizes, and the keys of the
// versions' manifests.
func (p *publication) atRoot(ctx context.Context) (sizes map[string]int64, manifests []string, err error) {
	sizes = map[string]int64{}
	for o, err := range p.cfg.Dest.List(ctx, "") {
		if err != nil {
			return nil, nil, fmt.Errorf("listing the files at the root: %w", err)
		}
		switch base := baseOf(o.Key); {
		case base != "" && o.Key == base+manifestKey:
			manifests = append(manifests, o.Key)
		case base == "" && !isControlKey(o.Key) && o.Key != manifestKey:
			sizes[o.Key] = o.Size
		}
	}
	return sizes, manifests, nil
}

// supersededFiles returns the objects at the root that come from versions other than
// m. Objects that are in no version belong to the user and stay.
func (p *publication) supersededFiles(ctx context.Context, m schemas.Manifest, sizes map[string]int64, manifests []string) ([]string, error) {
	left := map[string]bool{}
	for key := range sizes {
		left[key] = true
	}
	for _, f := range m.Files {
		delete(left, f.Path)
	}
	var old []string
	for _, key := range manifests {
		if len(left) == 0 || !strings.HasPrefix(key, versionsDir) { // layout 1 copies nothing to the root
			continue
		}
		raw, err := p.cfg.Dest.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of an earlier version: %w", err)
		}
		other, err := parseManifest(raw)
		if err != nil {
			continue // verify reports it
		}
		for _, f := range other.Files {
			if left[f.Path] {
				old = append(old, f.Path)
				delete(left, f.Path)
			}
		}
	}
	slices.Sort(old)
	return old, nil
}
