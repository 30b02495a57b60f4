package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Files returns the files and symlinks of a tree, sorted by path.
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

// ReadFile returns the content of a file of a tree, or the target of a symlink. found is false if the tree has no such
// file or symlink.
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

// Texts returns the contents of those files of a tree that want accepts, by path. It omits symlinks.
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

// Restore returns a tree like final in which all paths that protected accepts are as in base: changed and deleted files
// are restored, and added ones removed. It removes files that prevent that, such as a symlink in the place of a
// restored file's directory. restored lists the paths that differed, sorted.
func (s *Store) Restore(ctx context.Context, base, final string, protected func(path string) bool) (tree string, restored []string, err error) {
	before, err := s.Files(ctx, base)
	if err != nil {
		return "", nil, err
	}
	after, err := s.Files(ctx, final)
	if err != nil {
		return "", nil, err
	}
	remaining := map[string]File{} // files of final, without protected files of base
	for _, f := range after {
		remaining[f.Path] = f
	}
	root := &node{mode: modeDir, children: map[string]*node{}}
	for _, f := range before {
		if !protected(f.Path) {
			continue
		}
		if remaining[f.Path] != f {
			restored = append(restored, f.Path)
		}
		delete(remaining, f.Path)
		root.add(f.Path, f.Mode, f.hash)
	}
	for _, f := range after {
		if _, found := remaining[f.Path]; !found {
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

// Edit returns a tree in which some files have other contents. A nil content removes a file. New files are regular
// files that are not executable, and existing ones keep their mode.
func (s *Store) Edit(ctx context.Context, tree string, texts map[string][]byte) (string, error) {
	files, err := s.Files(ctx, tree)
	if err != nil {
		return "", err
	}
	modes := map[string]uint32{}
	root := &node{mode: modeDir, children: map[string]*node{}}
	for _, f := range files {
		if _, changed := texts[f.Path]; changed {
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
			return "", fmt.Errorf("editing a tree: %s conflicts with another file or directory", path)
		}
	}
	h, err := s.writeTree(root)
	return h.String(), err
}
