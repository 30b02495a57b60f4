package workspace

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// Base imports a task's repository and returns the hash of its tree. It records the hash on disk, so that each content
// is imported only once.
func (s *Store) Base(ctx context.Context, tree env.Tree) (string, error) {
	key, err := contentKey(tree)
	if err != nil {
		return "", err
	}
	record := filepath.Join(s.dir, "trees", key)
	if known, err := os.ReadFile(record); err == nil {
		if h, err := parseHash(string(known)); err == nil {
			return h.String(), nil
		}
	}
	var sha string
	err = env.Stream(tree.WriteTar, func(r io.Reader) (err error) {
		sha, err = s.Import(ctx, r)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("importing repository: %w", err)
	}
	return sha, writeAtomic(record, []byte(sha))
}

// contentKey returns a tree's SHA-256. It checks the format, because the hash becomes a file name.
func contentKey(tree env.Tree) (string, error) {
	key := tree.SHA256()
	if raw, err := hex.DecodeString(key); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("tree has the content hash %q: it must be 64 hex digits", key)
	}
	return key, nil
}

// Placement writes the initial content of an agent's workspace as a tar archive: the tree, and a .git directory in
// which the tree is the only commit, so that git status, diff and stash work. The commit has the message "base" and a
// fixed author and date, and the repository has the branch main and no remotes. Each archive is built once per content
// and kept on disk.
func (s *Store) Placement(ctx context.Context, tree env.Tree, w io.Writer) error {
	key, err := contentKey(tree)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "placements", key+".tar")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		_, err, _ = s.built.Do(key, func() (any, error) { return nil, s.buildPlacement(ctx, tree, path) })
		if err != nil {
			return fmt.Errorf("preparing workspace: %w", err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("preparing workspace: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("placing workspace: %w", err)
	}
	return nil
}

// The configuration of the agent's repository, and the author of its commit. The identity lets the agent commit.
const (
	placedConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
		"[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n"
	placedAuthor = "tracesmith <tracesmith@localhost> 946684800 +0000"
)

func (s *Store) buildPlacement(ctx context.Context, tree env.Tree, path string) error {
	base, err := s.Base(ctx, tree)
	if err != nil {
		return err
	}
	commit, err := s.put("commit", fmt.Appendf(nil, "tree %s\nauthor %s\ncommitter %s\n\nbase\n", base, placedAuthor, placedAuthor))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "placement-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index := filepath.Join(dir, "index")
	if _, err := s.run(ctx, command{index: index, args: []string{"read-tree", base}}); err != nil {
		return err
	}
	_, err = s.run(ctx, command{stdin: strings.NewReader(commit.String() + "\n"), limit: 256, args: []string{
		"pack-objects", "--revs", "--window=0", "--threads=1", "--quiet", filepath.Join(dir, "pack"),
	}})
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"HEAD": []byte("ref: refs/heads/main\n"), "config": []byte(placedConfig),
		"refs/heads/main": []byte(commit.String() + "\n"),
		"info/exclude":    []byte(strings.Join(Ignored, "\n") + "\n"), // not shown as untracked files
	}
	found, err := filepath.Glob(filepath.Join(dir, "pack-*"))
	if err != nil {
		return err
	}
	for _, from := range append(found, index) {
		name := filepath.Base(from)
		switch filepath.Ext(name) {
		case ".pack", ".idx":
			name = "objects/pack/" + name
		case "":
		default:
			continue
		}
		if files[name], err = os.ReadFile(from); err != nil {
			return err
		}
	}
	return s.writePlacement(ctx, base, files, path)
}

// writePlacement writes the archive to path: first .git, then the tree.
func (s *Store) writePlacement(ctx context.Context, base string, files map[string][]byte, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := tar.NewWriter(f)
	for _, d := range []string{"", "info/", "objects/", "objects/pack/", "refs/", "refs/heads/", "refs/tags/"} {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: ".git/" + d, Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeTarFile(out, ".git/"+name, 0o644, files[name]); err != nil {
			return err
		}
	}
	if err := s.exportTo(ctx, base, out); err != nil {
		return err
	}
	if err := errors.Join(out.Close(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
