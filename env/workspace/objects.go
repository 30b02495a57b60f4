package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The store uses git's format of loose objects: zlib("<kind> <size>\0<content>") in a file named after the SHA-1 of the
// uncompressed data. Patches contain these hashes, so the store uses SHA-1 like the repositories that apply the
// patches.

// hash is the name of an object.
type hash [sha1.Size]byte

func (h hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash reads a 40-digit object name.
func parseHash(s string) (hash, error) {
	var h hash
	if raw, err := hex.DecodeString(s); err != nil || len(raw) != len(h) {
		return h, fmt.Errorf("%q is not a hash of 40 hexadecimal digits", s)
	} else {
		copy(h[:], raw)
	}
	return h, nil
}

func (s *Store) objectPath(h hash) string {
	name := h.String()
	return s.path("objects", name[:2], name[2:])
}

// put stores an object, unless the store already has it.
func (s *Store) put(kind string, content []byte) (hash, error) {
	head := kind + " " + strconv.Itoa(len(content)) + "\x00"
	sum := sha1.New()
	io.WriteString(sum, head)
	sum.Write(content)
	h := hash(sum.Sum(nil))
	path := s.objectPath(h)
	if _, err := os.Lstat(path); err == nil {
		return h, nil
	}
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return h, err
	}
	io.WriteString(z, head)
	z.Write(content)
	if err := z.Close(); err != nil {
		return h, fmt.Errorf("storing object: %w", err)
	}
	if err := os.MkdirAll(s.path("objects", h.String()[:2]), 0o700); err != nil {
		return h, fmt.Errorf("storing object: %w", err)
	}
	if err := writeAtomic(path, packed.Bytes()); err != nil {
		return h, fmt.Errorf("storing object: %w", err)
	}
	return h, nil
}

// get returns the content of an object of the given kind. It checks the hash of the content.
func (s *Store) get(kind string, h hash) ([]byte, error) {
	f, err := os.Open(s.objectPath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %s is not in the object store %s", kind, h, s.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	defer f.Close()
	damaged := func(why any) error {
		return fmt.Errorf("%s %s in the object store is damaged (%v): remove %s and run again", kind, h, why, s.dir)
	}
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, damaged(err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, MaxFileBytes+64))
	if err != nil {
		return nil, damaged(err)
	}
	if sha1.Sum(raw) != h {
		return nil, damaged("hash differs")
	}
	head, content, _ := bytes.Cut(raw, []byte{0})
	if got, _, _ := strings.Cut(string(head), " "); got != kind {
		return nil, fmt.Errorf("object %s is a %s, not a %s", h, got, kind)
	}
	return content, nil
}

// Modes of the entries of a tree.
const (
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeSymlink = 0o120000
	modeDir     = 0o040000
)

// node is an entry of a tree that is being built. It is a directory if children is not nil.
type node struct {
	mode     uint32
	hash     hash
	children map[string]*node
}

// add adds an entry below n. It returns false if the path already exists or leads through an entry that is not a
// directory.
func (n *node) add(path string, mode uint32, h hash) bool {
	parts := strings.Split(path, "/")
	for _, p := range parts[:len(parts)-1] {
		next := n.children[p]
		if next == nil {
			next = &node{mode: modeDir, children: map[string]*node{}}
			n.children[p] = next
		}
		if next.children == nil {
			return false
		}
		n = next
	}
	last := parts[len(parts)-1]
	if n.children[last] != nil {
		return false
	}
	n.children[last] = &node{mode: mode, hash: h}
	return true
}

// writeTree stores n and the directories below it as tree objects, and returns the hash of n.
func (s *Store) writeTree(n *node) (hash, error) {
	type entry struct{ sortKey, name string }
	var order []entry
	for name, c := range n.children {
		key := name
		if c.children != nil {
			key += "/" // git sorts directories as if they ended in a slash
		}
		order = append(order, entry{key, name})
	}
	slices.SortFunc(order, func(a, b entry) int { return strings.Compare(a.sortKey, b.sortKey) })
	var content bytes.Buffer
	for _, e := range order {
		c := n.children[e.name]
		if c.children != nil {
			h, err := s.writeTree(c)
			if err != nil {
				return hash{}, err
			}
			c.hash = h
		}
		fmt.Fprintf(&content, "%o %s\x00", c.mode, e.name)
		content.Write(c.hash[:])
	}
	return s.put("tree", content.Bytes())
}

// File is one entry of a tree: a regular file or a symlink.
type File struct {
	Path string // slash-separated, relative to the workspace
	Mode uint32 // ModeFile, ModeExec or ModeSymlink
	hash hash
}

// walk calls fn for every entry below a tree in git's order. Directories, whose Path ends with a slash, come before
// their contents.
func (s *Store) walk(tree hash, prefix string, fn func(File) error) error {
	entries, err := s.entries(tree)
	if err != nil {
		return err
	}
	for _, f := range entries {
		f.Path = prefix + f.Path
		if f.Mode != modeDir {
			if err := fn(f); err != nil {
				return err
			}
			continue
		}
		f.Path += "/"
		if err := fn(f); err != nil {
			return err
		}
		if err := s.walk(f.hash, f.Path, fn); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the entries of one directory in git's order. Their Path is only the name.
func (s *Store) entries(dir hash) ([]File, error) {
	content, err := s.get("tree", dir)
	if err != nil {
		return nil, err
	}
	var out []File
	for len(content) > 0 {
		head, rest, ok := bytes.Cut(content, []byte{0})
		modeText, name, ok2 := strings.Cut(string(head), " ")
		mode, err := strconv.ParseUint(modeText, 8, 32)
		if !ok || !ok2 || err != nil || len(rest) < sha1.Size {
			return nil, fmt.Errorf("tree %s is malformed", dir)
		}
		out = append(out, File{Path: name, Mode: uint32(mode), hash: hash(rest[:sha1.Size])})
		content = rest[sha1.Size:]
	}
	return out, nil
}

// find returns the entry at a path of a tree. It reads only the directories above the entry. found is false if the tree
// has no file or symlink at that path.
func (s *Store) find(tree hash, path string) (f File, found bool, err error) {
	f = File{Mode: modeDir, hash: tree}
	for name := range strings.SplitSeq(path, "/") {
		if f.Mode != modeDir {
			return File{}, false, nil
		}
		entries, err := s.entries(f.hash)
		if err != nil {
			return File{}, false, err
		}
		i := slices.IndexFunc(entries, func(e File) bool { return e.Path == name })
		if i < 0 {
			return File{}, false, nil
		}
		f = entries[i]
	}
	f.Path = path
	return f, f.Mode != modeDir, nil
}
