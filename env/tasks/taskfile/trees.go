package taskfile

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// treeCache opens and caches the repositories that a task file refers to. Several lines may
// refer to the same one, which is opened only once. It is safe for concurrent use.
type treeCache struct {
	root  string // directory of the task file
	cache string // directory of decompressed repositories

	mu    sync.Mutex
	trees map[string]*workspace.Tree
}

// open returns the repository that a repo_tree value refers to.
func (s *treeCache) open(ref string) (*workspace.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.trees[ref]; t != nil {
		return t, nil
	}
	name, err := s.path(ref)
	if err != nil {
		return nil, err
	}
	t, err := Open(name, s.cache)
	if err != nil {
		return nil, err
	}
	if s.trees == nil {
		s.trees = map[string]*workspace.Tree{}
	}
	s.trees[ref] = t
	return t, nil
}

// path returns the path that a repo_tree value refers to, and an error if it lies outside
// root, even through a symbolic link.
func (s *treeCache) path(ref string) (string, error) {
	if !filepath.IsLocal(ref) {
		return "", fmt.Errorf("repo_tree %.200q: want a path below the directory of the task file", ref)
	}
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return "", fmt.Errorf("opening repo_tree: %w", err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, ref))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("repo_tree %s does not exist: it must lie beside the task file", filepath.Join(s.root, ref))
	}
	if err != nil {
		return "", fmt.Errorf("opening repo_tree: %w", err)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("repo_tree %s is a link that leads out of the directory of the task file", ref)
	}
	return filepath.Join(s.root, ref), nil
}

// Open opens a repository: a directory or a .tar, .tar.gz (.tgz) or .tar.zst file. It decompresses a compressed file
// into the directory cache, unless a file with that content is already there. The cache may be deleted while no process
// uses it.
func Open(name, cache string) (*workspace.Tree, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("opening the repository: %w", err)
	case info.IsDir():
		return workspace.FromDir(name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a directory nor a file", name)
	case strings.HasSuffix(name, ".tar"):
		return workspace.FromTar(name)
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.zst"):
		plain, err := decompress(name, cache)
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", name, err)
		}
		return workspace.FromTar(plain)
	}
	return nil, fmt.Errorf("%s: want a directory, a .tar, .tar.gz or .tar.zst", name)
}

// DefaultCache returns the default directory for decompressed repositories: tracesmith/trees in the user's cache
// directory, or a directory for the current user in os.TempDir if the user has no cache directory.
func DefaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "tracesmith", "trees")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tracesmith-trees-%d", os.Getuid()))
}

// maxTar is the largest size of a decompressed archive, in bytes. It allows as many bytes for tar headers as for the
// files.
const maxTar = 2 * workspace.MaxRepositoryBytes

// decompress returns the name of the decompressed archive in the cache, and writes this file if it does not exist.
func decompress(name, cache string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	out := filepath.Join(cache, hex.EncodeToString(h.Sum(nil))+".tar")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	var in io.Reader
	if strings.HasSuffix(name, ".zst") {
		dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return "", err
		}
		defer dec.Close()
		in = dec
	} else if in, err = gzip.NewReader(f); err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	return out, writeAtomic(out, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(in, maxTar+1))
		if err == nil && n > maxTar {
			err = fmt.Errorf("it unpacks to more than %d MB", maxTar>>20)
		}
		return err
	})
}

// writeAtomic writes a file under a temporary name and renames it, so that other processes never see a partial file.
func writeAtomic(name string, fill func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)))
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing after the rename
	if err := fill(f); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
