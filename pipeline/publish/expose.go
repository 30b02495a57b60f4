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

// exposed reports whether the root holds the files of m, of the sizes that m says,
// and no file of another version.
func (p *publication) exposed(ctx context.Context, m schemas.Manifest) (bool, error) {
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		return false, err
	}
	have, err := p.cfg.Dest.Get(ctx, manifestKey)
	if errors.Is(err, sinks.ErrNotFound) || err == nil && !bytes.Equal(have, raw) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the files at the root: %w", err)
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
	old, err := p.superseded(ctx, m, sizes, manifests)
	return len(old) == 0, err
}

// expose puts the files of the latest version at the root, where loaders and people
// look for them, and removes those of the version before. The card comes when the
// files are there that it names, and the manifest last, so that an interrupted call
// is seen and completed by the next publish. What is at the root is a copy: whatever
// happens to it, the versions stay as they are.
func (p *publication) expose(ctx context.Context, m schemas.Manifest) error {
	if done, err := p.exposed(ctx, m); err != nil || done {
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
	old, err := p.superseded(ctx, m, sizes, manifests)
	if err != nil {
		return err
	}
	if !p.isLatest(ctx, m) { // asleep for so long that another publisher has taken over
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

// rank sorts the card behind the files that it names.
func rank(file string) int {
	if file == cardKey {
		return 1
	}
	return 0
}

// exposeFile makes the object at the root what f says. Another publisher may be
// about to do the same.
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

// atRoot lists the objects of no version, with their sizes, and the manifests of
// the versions.
func (p *publication) atRoot(ctx context.Context) (sizes map[string]int64, manifests []string, err error) {
	sizes = map[string]int64{}
	for o, err := range p.cfg.Dest.List(ctx, "") {
		if err != nil {
			return nil, nil, fmt.Errorf("listing the files at the root: %w", err)
		}
		switch base := baseOf(o.Key); {
		case base != "" && o.Key == base+manifestKey:
			manifests = append(manifests, o.Key)
		case base == "" && !control(o.Key) && o.Key != manifestKey:
			sizes[o.Key] = o.Size
		}
	}
	return sizes, manifests, nil
}

// superseded are the objects at the root that a version other than m has put there.
// Those that no version has are somebody's own and stay.
func (p *publication) superseded(ctx context.Context, m schemas.Manifest, sizes map[string]int64, manifests []string) ([]string, error) {
	left := map[string]bool{}
	for key := range sizes {
		left[key] = true
	}
	for _, f := range m.Files {
		delete(left, f.Path)
	}
	var old []string
	for _, key := range manifests {
		if len(left) == 0 || !strings.HasPrefix(key, versionsDir) { // earlier layouts put nothing there
			continue
		}
		raw, err := p.cfg.Dest.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of an earlier version: %w", err)
		}
		other, err := parseManifest(raw)
		if err != nil {
			continue // verify names it
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
