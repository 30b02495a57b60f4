package sources

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// repositories finds the files of instances on this machine. It reads the blobs of a commit from a clone, so the
// history, other branches and git attributes of the repository do not affect the files.
type repositories struct {
	clones string // directory of git repositories, bare or not, named owner__name, owner+name, owner/name or name
	trees  string // directory of prepared repositories: <instance>[.tar|.tar.gz|.tar.zst]
	cache  string // directory for the files of commits and for decompressed archives
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// open returns the files of an instance: the prepared repository, or else the commit in a clone.
func (r repositories) open(ctx context.Context, instance, repo, commit string) (*workspace.Tree, error) {
	if r.trees != "" {
		for _, ext := range []string{"", ".tar", ".tar.gz", ".tar.zst"} {
			if name := filepath.Join(r.trees, instance+ext); exists(name) {
				return taskfile.Open(name, r.cache)
			}
		}
	}
	if r.clones == "" {
		return nil, fmt.Errorf("%s needs its repository: set tasks.with.repos to a directory with a clone of %s (git clone --bare), or tasks.with.trees to one with %s.tar", instance, repo, instance)
	}
	if !commitPattern.MatchString(commit) {
		return nil, fmt.Errorf("%s: %q is not a commit", instance, commit)
	}
	git, err := r.findClone(repo)
	if err != nil {
		return nil, err
	}
	return r.treeAt(ctx, git, commit, instance)
}

// treeAt returns the files of a commit. git is the git directory; instance is named in errors.
func (r repositories) treeAt(ctx context.Context, git, commit, instance string) (*workspace.Tree, error) {
	full, err := gitOut(ctx, git, nil, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("%s has no commit %s, which %s needs: fetch it (git fetch origin %s)", git, commit, instance, commit)
	}
	cached := filepath.Join(r.cache, "git-"+strings.TrimSpace(string(full))+".tar")
	if !exists(cached) {
		if err := os.MkdirAll(r.cache, 0o700); err != nil {
			return nil, fmt.Errorf("making the cache of trees: %w", err)
		}
		if err := writeArchive(ctx, git, strings.TrimSpace(string(full)), cached); err != nil {
			return nil, fmt.Errorf("reading %s at %s: %w", git, commit, err)
		}
	}
	return workspace.FromTar(cached)
}

// AtCommit returns the files of a commit in a checkout or bare repository on this machine.
func AtCommit(ctx context.Context, dir, commit string) (*workspace.Tree, error) {
	git := filepath.Join(dir, ".git")
	if !exists(git) {
		git = dir
	}
	return repositories{cache: taskfile.DefaultCache()}.treeAt(ctx, git, commit, dir)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// findClone returns the git directory of a repository. If repo is a name without an owner, it returns the first clone
// of that name.
func (r repositories) findClone(repo string) (string, error) {
	owner, name, hasOwner := strings.Cut(repo, "/")
	if !hasOwner {
		owner, name = "*", repo
	}
	dirs := []string{name}
	for _, sep := range []string{"__", "+", "/"} {
		found, err := filepath.Glob(filepath.Join(r.clones, owner+sep+name))
		if err != nil {
			return "", fmt.Errorf("looking for a clone of %s: %w", repo, err)
		}
		for _, f := range found {
			dirs = append(dirs, strings.TrimPrefix(f, filepath.Clean(r.clones)+"/"))
		}
	}
	for _, dir := range append(dirs, owner+"__"+name, owner+"+"+name) {
		// The directory may be a checkout, hold one named repo, or be a bare repository, also with the suffix .git.
		for _, sub := range []string{".git", "repo", "", ".git/"} {
			git := filepath.Join(r.clones, dir, sub)
			if sub == ".git/" {
				git = filepath.Join(r.clones, dir+".git")
			}
			if exists(filepath.Join(git, "objects")) && exists(filepath.Join(git, "HEAD")) {
				return git, nil
			}
		}
	}
	return "", fmt.Errorf("%s contains no clone of %s: git clone --bare https://github.com/%s %s", r.clones, repo, repo,
		filepath.Join(r.clones, owner+"__"+name))
}

// gitOut runs git on a repository, without the host's configuration, and returns its output.
func gitOut(ctx context.Context, git string, in io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_DIR=" + git, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_NO_REPLACE_OBJECTS=1"}
	cmd.Stdin = in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %.300s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// writeArchive writes the files of a commit to a tar file. It leaves out submodules.
func writeArchive(ctx context.Context, git, commit, name string) error {
	list, err := gitOut(ctx, git, nil, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return err
	}
	type blob struct{ mode, hash, path string }
	var blobs []blob
	var hashes strings.Builder
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		head, file, _ := strings.Cut(entry, "\t")
		f := strings.Fields(head)
		if len(f) == 3 && f[1] == "blob" {
			blobs = append(blobs, blob{f[0], f[2], file})
			hashes.WriteString(f[2] + "\n")
		}
	}
	cmd := exec.CommandContext(ctx, "git", "cat-file", "--batch")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_DIR=" + git, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_NO_REPLACE_OBJECTS=1"}
	cmd.Stdin = strings.NewReader(hashes.String())
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReader(pipe)
	err = writeTar(name, func(out *tar.Writer) error {
		for _, b := range blobs {
			if err := writeBlob(out, in, b.mode, b.path); err != nil {
				return fmt.Errorf("%s: %w", b.path, err)
			}
		}
		return nil
	})
	_ = pipe.Close()
	return errors.Join(err, cmd.Wait())
}

// writeBlob copies the next blob from the output of git cat-file.
func writeBlob(out *tar.Writer, in *bufio.Reader, mode, path string) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		return fmt.Errorf("the repository lacks this blob: %s", strings.TrimSpace(line))
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size > workspace.MaxRepositoryBytes {
		return fmt.Errorf("the file is too large: %s bytes", f[2])
	}
	head := &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: size}
	switch mode {
	case "100755":
		head.Mode = 0o755
	case "120000":
		target := make([]byte, size)
		if _, err := io.ReadFull(in, target); err != nil {
			return err
		}
		head.Typeflag, head.Linkname, head.Size = tar.TypeSymlink, string(target), 0
	}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	if head.Typeflag == tar.TypeReg {
		if _, err := io.CopyN(out, in, size); err != nil {
			return err
		}
	}
	_, err = in.Discard(1) // the newline after the blob
	return err
}

// writeTar writes a tar file atomically.
func writeTar(name string, fill func(*tar.Writer) error) error {
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)))
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing after the rename
	out := tar.NewWriter(f)
	if err := fill(out); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
