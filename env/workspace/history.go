package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// History reads the commits of a git repository on the host. It reads only the objects and references of the
// repository, so the repository's configuration, hooks, filters and attributes have no effect.
type History struct {
	store *Store
	head  string
}

// OpenHistory opens the repository whose work tree or .git directory is dir. The History reads the repository's objects
// in place. It does not write to the repository.
func (s *Store) OpenHistory(dir string) (*History, error) {
	git := filepath.Join(dir, ".git")
	if _, err := os.Stat(git); err != nil {
		git = dir
	}
	objects, err := filepath.Abs(filepath.Join(git, "objects"))
	if err != nil {
		return nil, fmt.Errorf("opening history: %w", err)
	}
	if info, err := os.Stat(objects); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("opening history: %s is not a git repository with its own objects", dir)
	}
	head, err := Head(git)
	if err != nil {
		return nil, fmt.Errorf("opening history of %s: %w", dir, err)
	}
	view := &Store{dir: s.dir, git: s.git, program: s.program, objects: objects}
	if shallow, err := filepath.Abs(filepath.Join(git, "shallow")); err == nil {
		if _, err := os.Stat(shallow); err == nil {
			view.shallow = shallow
		}
	}
	return &History{store: view, head: head}, nil
}

// Head returns the hash of HEAD of a .git directory, without running git.
func Head(git string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	ref, isRef := strings.CutPrefix(text, "ref: ")
	if !isRef {
		_, err := parseHash(text)
		return text, err
	}
	if !filepath.IsLocal(ref) {
		return "", fmt.Errorf("HEAD is %q", ref)
	}
	if raw, err := os.ReadFile(filepath.Join(git, ref)); err == nil {
		text := strings.TrimSpace(string(raw))
		_, err := parseHash(text)
		return text, err
	}
	packed, err := os.ReadFile(filepath.Join(git, "packed-refs"))
	if err != nil {
		return "", fmt.Errorf("HEAD names %s, which does not exist", ref)
	}
	for line := range strings.Lines(string(packed)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			_, err := parseHash(hash)
			return hash, err
		}
	}
	return "", fmt.Errorf("HEAD names %s, which does not exist", ref)
}

// Head returns the hash of HEAD.
func (h *History) Head() string { return h.head }

// Commits returns the hashes of up to n commits with exactly one parent, from HEAD, newest first.
func (h *History) Commits(ctx context.Context, n int) ([]string, error) {
	out, err := h.store.run(ctx, command{limit: 1 << 20, args: []string{
		"rev-list", "--no-merges", "--min-parents=1", "--max-count=" + strconv.Itoa(min(n, 20_000)), h.head, "--"}})
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// Changed returns the differences between a commit and its parent, sorted by path.
func (h *History) Changed(ctx context.Context, commit string) ([]Change, error) {
	if _, err := parseHash(commit); err != nil {
		return nil, err
	}
	return h.store.Changed(ctx, commit+"^", commit)
}

// Reverse returns the patch from a commit to its parent, for some files.
func (h *History) Reverse(ctx context.Context, commit string, paths []string) ([]byte, error) {
	if _, err := parseHash(commit); err != nil {
		return nil, err
	}
	args := append([]string{"diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
		"--unified=3", "--src-prefix=a/", "--dst-prefix=b/", commit, commit + "^", "--"}, literal(paths)...)
	return h.store.run(ctx, command{limit: MaxPatch, args: args})
}

// literal returns paths in a form that git does not treat as patterns.
func literal(paths []string) []string {
	out := slices.Clone(paths)
	for i := range out {
		out[i] = ":(literal)" + out[i]
	}
	return out
}

// File returns the content of a file in a commit, or in the commit's parent. found is false if the file does not exist
// there.
func (h *History) File(ctx context.Context, commit, path string, parent bool) (content []byte, found bool, err error) {
	if _, err := parseHash(commit); err != nil {
		return nil, false, err
	}
	if parent {
		commit += "^"
	}
	content, err = h.store.run(ctx, command{limit: MaxFileBytes, args: []string{"cat-file", "blob", commit + ":" + path}})
	if _, failed := errors.AsType[*gitError](err); failed {
		return nil, false, nil
	}
	return content, err == nil, err
}

// ApplyHead applies a patch to HEAD and returns the resulting contents of the files in paths. If the patch does not
// apply, the error is an *ApplyError.
func (h *History) ApplyHead(ctx context.Context, patch []byte, paths []string) ([][]byte, error) {
	out, err := h.store.run(ctx, command{limit: 128, args: []string{"rev-parse", "--verify", h.head + "^{tree}"}})
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}
	tree, err := h.store.Apply(ctx, strings.TrimSpace(string(out)), patch)
	if err != nil {
		return nil, err
	}
	var files [][]byte
	for _, p := range paths {
		content, err := h.store.run(ctx, command{limit: MaxFileBytes, args: []string{"cat-file", "blob", tree + ":" + p}})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", p, err)
		}
		files = append(files, content)
	}
	return files, nil
}
