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

// Edit is what becomes of one path in Edit.
type Edit struct {
	Path   string
	Delete bool
	Exec   bool   // the file is executable
	Link   bool   // a symlink; Data is its target
	Data   []byte // the new content; it belongs to the tree from now on
}

// Edit is the tree with some files added, replaced or deleted, and directories
// that become empty by that removed. It shares everything else with t.
func (t *Tree) Edit(changes []Edit) (*Tree, error) {
	out := &Tree{open: t.open, label: t.label}
	index, gone := map[string]int{}, map[string]bool{}
	for _, c := range changes {
		if !fs.ValidPath(c.Path) || c.Path == "." || slices.ContainsFunc(strings.Split(c.Path, "/"), skipped) {
			return nil, fmt.Errorf("%s: no file of a repository may be called %q", t.label, c.Path)
		}
		if e, known := t.find(c.Path); known && e.mode.IsDir() {
			return nil, fmt.Errorf("%s: %s is a directory", t.label, c.Path)
		} else if !known && c.Delete {
			return nil, fmt.Errorf("%s has no %s to delete", t.label, c.Path)
		}
		gone[c.Path] = true
	}
	emptied := t.emptied(changes)
	for _, e := range t.entries {
		if gone[e.path] || emptied[e.path] {
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

// emptied are the directories that lose their last entry by the deletions. Those
// that a new file lies in come back by themselves.
func (t *Tree) emptied(changes []Edit) map[string]bool {
	left := map[string]int{}
	for _, e := range t.entries {
		left[path.Dir(e.path)]++
	}
	gone := map[string]bool{}
	for _, c := range changes {
		for name := c.Path; c.Delete; {
			dir := path.Dir(name)
			left[dir]--
			if dir == "." || left[dir] > 0 {
				break
			}
			gone[dir] = true
			name = dir
		}
	}
	return gone
}

func (t *Tree) find(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(t.entries, name, func(e entry, p string) int { return strings.Compare(e.path, p) })
	if !ok {
		return entry{}, false
	}
	return t.entries[i], true
}

// File is the content of a file (of a symlink, its target) as it was hashed;
// exec and link say what it is. One that is not there gives fs.ErrNotExist.
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

// reader opens the content of a regular file.
func (t *Tree) reader(e entry) (io.ReadCloser, error) {
	if e.edited {
		return io.NopCloser(bytes.NewReader(e.data)), nil
	}
	return t.open(e)
}

// Sub is the tree below a directory, of the paths (relative to it) that keep
// accepts; directories are kept as far as something lies in them.
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
