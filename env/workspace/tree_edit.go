package workspace

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// FileEdit describes a change of one path, for Tree.Edit.
type FileEdit struct {
	Path   string
	Delete bool
	Exec   bool   // the new file is executable
	Link   bool   // the new file is a symlink whose target is Data
	Data   []byte // the new content; the tree keeps the slice
}

// Edit returns a tree with some files added, replaced or deleted. Directories that become empty are removed. The new
// tree shares everything else with t.
func (t *Tree) Edit(changes []FileEdit) (*Tree, error) {
	out := &Tree{open: t.open, label: t.label}
	index, changed := map[string]int{}, map[string]bool{}
	for _, c := range changes {
		if !fs.ValidPath(c.Path) || c.Path == "." || slices.ContainsFunc(strings.Split(c.Path, "/"), isOmitted) {
			return nil, fmt.Errorf("%s: a repository cannot contain a file %q", t.label, c.Path)
		}
		if e, known := t.find(c.Path); known && e.mode.IsDir() {
			return nil, fmt.Errorf("%s: %s is a directory", t.label, c.Path)
		} else if !known && c.Delete {
			return nil, fmt.Errorf("%s has no %s to delete", t.label, c.Path)
		}
		changed[c.Path] = true
	}
	emptied := t.emptied(changes)
	for _, e := range t.entries {
		if changed[e.path] || emptied[e.path] {
			continue
		}
		if err := out.add(index, e); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if c.Delete {
			continue
		}
		e := entry{path: c.Path, mode: 0o644, size: int64(len(c.Data)), data: c.Data, edited: true, sum: sha256.Sum256(c.Data)}
		switch {
		case c.Link:
			e.mode, e.target, e.size = fs.ModeSymlink, string(c.Data), 0
		case c.Exec:
			e.mode = 0o755
		}
		if err := out.add(index, e); err != nil {
			return nil, err
		}
	}
	if err := out.checkSize(); err != nil {
		return nil, err
	}
	out.finish()
	return out, nil
}

// emptied returns the directories that lose their last entry by the deletions. If a change adds a file to one of them,
// add creates the directory again.
func (t *Tree) emptied(changes []FileEdit) map[string]bool {
	count := map[string]int{} // entries of each directory
	for _, e := range t.entries {
		count[path.Dir(e.path)]++
	}
	emptied := map[string]bool{}
	for _, c := range changes {
		for name := c.Path; c.Delete; {
			dir := path.Dir(name)
			count[dir]--
			if dir == "." || count[dir] > 0 {
				break
			}
			emptied[dir] = true
			name = dir
		}
	}
	return emptied
}

func (t *Tree) find(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(t.entries, name, func(e entry, p string) int { return strings.Compare(e.path, p) })
	if !ok {
		return entry{}, false
	}
	return t.entries[i], true
}

// File returns the content of a file, or the target of a symlink, which link reports. exec reports whether the file is
// executable. The error is fs.ErrNotExist if the file does not exist. It is another error if the file has changed since
// it was hashed.
func (t *Tree) File(name string) (data []byte, exec, link bool, err error) {
	e, ok := t.find(name)
	switch {
	case !ok || e.mode.IsDir():
		return nil, false, false, fmt.Errorf("%s: %s: %w", t.label, name, fs.ErrNotExist)
	case e.mode.Type() == fs.ModeSymlink:
		return []byte(e.target), false, true, nil
	}
	var buf bytes.Buffer
	sum, err := t.copy(&buf, e)
	if err == nil && sum != e.sum {
		err = t.changed(name)
	}
	return buf.Bytes(), e.mode == 0o755, false, err
}

// ChangedFrom returns the paths of base that t lacks, or that have other content in t.
func (t *Tree) ChangedFrom(base *Tree) []string {
	var out []string
	for _, was := range base.entries {
		now, ok := t.find(was.path)
		if !was.mode.IsDir() && (!ok || now.mode.Type() != was.mode.Type() || now.sum != was.sum || now.target != was.target) {
			out = append(out, was.path)
		}
	}
	return out
}

// reader opens the content of a regular file.
func (t *Tree) reader(e entry) (io.ReadCloser, error) {
	if e.edited {
		return io.NopCloser(bytes.NewReader(e.data)), nil
	}
	return t.open(e)
}

// Sub returns the tree below a directory, with those files whose paths, relative to the directory, keep accepts. It has
// no empty directories.
func (t *Tree) Sub(dir string, keep func(path string) bool) (*Tree, error) {
	out := &Tree{open: t.open, label: path.Join(t.label, dir)}
	index := map[string]int{}
	for _, e := range t.entries {
		name, below := e.path, true
		if dir != "." {
			name, below = strings.CutPrefix(e.path, dir+"/")
		}
		if !below || e.mode.IsDir() || !keep(name) {
			continue
		}
		e.path = name
		if err := out.add(index, e); err != nil {
			return nil, err
		}
	}
	out.finish()
	return out, nil
}
