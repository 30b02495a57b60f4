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
	current, err := p.cfg.Dest.Get(ctx, manifestKey)
	if errors.Is(err, sinks.ErrNotFound) || err == nil && !bytes.Equal(current, raw) {
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
// look for them, and removes files of earlier versions from there. It writes the card
// after the files that the card names, and the manifest last, so that the next publish
// notices and completes an interrupted call. It does not change the versions themselves.
func (p *publication) expose(ctx context.Context, m schemas.Manifest) error {
	if done, err := p.isExposed(ctx, m); err != nil || done {
		return err
	}
	if err := p.cfg.Dest.Delete(ctx, manifestKey); err != nil {
		return fmt.Errorf("copying the version to the root: %w", err)
	}
	files := slices.Clone(m.Files)
	slices.SortStableFunc(files, func(a, b schemas.ManifestFile) int { return exposeOrder(a.Path) - exposeOrder(b.Path) })
	for _, f := range files {
		if err := p.exposeFile(ctx, f); err != nil {
			return fmt.Errorf("copying %s to the root: %w", f.Path, err)
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
		return fmt.Errorf("copying the version to the root: %w", ErrLeaseLost)
	}
	for _, key := range old {
		if err := p.cfg.Dest.Delete(ctx, key); err != nil {
			return fmt.Errorf("removing a file of an earlier version from the root: %w", err)
		}
	}
	if err := p.cfg.Dest.Copy(ctx, p.key(manifestKey), manifestKey); err != nil {
		return fmt.Errorf("copying the manifest to the root: %w", err)
	}
	return nil
}

// exposeOrder returns a sort key that puts the card after the files that it names.
func exposeOrder(file string) int {
	if file == cardKey {
		return 1
	}
	return 0
}

// exposeFile makes the object at the root equal to f. It is safe if another publisher does
// the same at the same time.
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

// supersededFiles returns the objects at the root that belong only to versions other than
// m. Objects that do not belong to any version are the user's, and are not included.
func (p *publication) supersededFiles(ctx context.Context, m schemas.Manifest, sizes map[string]int64, manifests []string) ([]string, error) {
	remaining := map[string]bool{}
	for key := range sizes {
		remaining[key] = true
	}
	for _, f := range m.Files {
		delete(remaining, f.Path)
	}
	var old []string
	for _, key := range manifests {
		if len(remaining) == 0 || !strings.HasPrefix(key, versionsDir) { // versions of layout 1 have no copy at the root
			continue
		}
		raw, err := p.cfg.Dest.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of an earlier version: %w", err)
		}
		other, err := parseManifest(raw)
		if err != nil {
			continue // the verify command reports it
		}
		for _, f := range other.Files {
			if remaining[f.Path] {
				old = append(old, f.Path)
				delete(remaining, f.Path)
			}
		}
	}
	slices.Sort(old)
	return old, nil
}
