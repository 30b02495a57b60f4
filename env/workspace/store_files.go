package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Files lists the entries of a tree, sorted by path; directories are implied.
func (s *Store) Files(ctx context.Context, tree string) ([]File, error) {
	root, err := parseHash(tree)
	if err != nil {
		return nil, err
	}
	var out []File
	err = s.walk(root, "", func(f File) error {
		if f.Mode != modeDir {
			out = append(out, f)
		}
		return ctx.Err()
	})
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out, err
}

// ReadFile returns the content of one file of a tree (a symlink's target text);
// found is false when the tree has no such entry.
func (s *Store) ReadFile(ctx context.Context, tree, path string) (content []byte, found bool, err error) {
	root, err := parseHash(tree)
	if err != nil {
		return nil, false, err
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	f, found, err := s.find(root, path)
	if err != nil || !found {
		return nil, false, err
	}
	content, err = s.get("blob", f.hash)
	return content, err == nil, err
}

// Texts returns the contents of the files of a tree that want accepts, by path;
// links have none.
func (s *Store) Texts(ctx context.Context, tree string, want func(path string) bool) (map[string]string, error) {
	files, err := s.Files(ctx, tree)
	texts := map[string]string{}
	for _, f := range files {
		if err != nil || f.Mode == ModeSymlink || !want(f.Path) {
			continue
		}
		var text []byte
		text, err = s.get("blob", f.hash)
		texts[f.Path] = string(text)
	}
	return texts, err
}

// Restore returns final with every path for which protected answers true put
// back to what base has: changed and deleted ones restored, added ones removed.
// Whatever stands in a restored path's way (a symlink in place of its
// directory, a directory in its place) goes. restored lists the paths that
// differed, sorted.
func (s *Store) Restore(ctx context.Context, base, final string, protected func(path string) bool) (tree string, restored []string, err error) {
	before, err := s.Files(ctx, base)
	if err != nil {
		return "", nil, err
	}
	after, err := s.Files(ctx, final)
	if err != nil {
		return "", nil, err
	}
	left := map[string]File{}
	for _, f := range after {
		left[f.Path] = f
	}
	root := &node{mode: modeDir, children: map[string]*node{}}
	for _, f := range before {
		if !protected(f.Path) {
			continue
		}
		if left[f.Path] != f {
			restored = append(restored, f.Path)
		}
		delete(left, f.Path)
		root.add(f.Path, f.Mode, f.hash)
	}
	for _, f := range after {
		if _, still := left[f.Path]; !still {
			continue
		}
		if protected(f.Path) || !root.add(f.Path, f.Mode, f.hash) {
			restored = append(restored, f.Path)
		}
	}
	h, err := s.writeTree(root)
	if err != nil {
		return "", nil, err
	}
	slices.Sort(restored)
	return h.String(), restored, nil
}

// Edit returns the tree with some files given another text; nil removes one. A
// new file is a plain one, the others keep their mode.
func (s *Store) Edit(ctx context.Context, tree string, texts map[string][]byte) (string, error) {
	files, err := s.Files(ctx, tree)
	if err != nil {
		return "", err
	}
	modes := map[string]uint32{}
	root := &node{mode: modeDir, children: map[string]*node{}}
	for _, f := range files {
		if _, other := texts[f.Path]; other {
			modes[f.Path] = f.Mode
		} else {
			root.add(f.Path, f.Mode, f.hash)
		}
	}
	for path, text := range texts {
		if text == nil {
			continue
		}
		h, err := s.put("blob", text)
		if err != nil {
			return "", err
		}
		if !root.add(path, cmp.Or(modes[path], ModeFile), h) {
			return "", fmt.Errorf("editing a tree: %s stands in the way of another file", path)
		}
	}
	h, err := s.writeTree(root)
	return h.String(), err
}
