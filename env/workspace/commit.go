package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// Commit describes a commit.
type Commit struct {
	Hash    string
	Parents []string
	Time    time.Time // when it was committed
	Message string
}

var revision = regexp.MustCompile(`^(?:HEAD|[0-9a-f]{4,40})(?:[~^]\d*)*$`)

// FindCommit returns a commit. rev is HEAD, a hash or the beginning of one, or the name of a tag or branch, and may
// have suffixes such as ~2.
func (h *History) FindCommit(ctx context.Context, rev string) (Commit, error) {
	name, suffix := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		name, suffix = rev[:i], rev[i:]
	}
	if name == "HEAD" {
		name = h.head
	} else if hash := h.refs(tagRefs, "refs/heads/", "refs/remotes/")[name]; hash != "" {
		name = hash
	}
	if !revision.MatchString(name + suffix) {
		return Commit{}, fmt.Errorf("the repository has no commit %q", rev)
	}
	out, err := h.store.run(ctx, command{limit: 1 << 20, args: []string{
		"log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%H%n%P%n%cI%n%B", name + suffix + "^{commit}", "--"}})
	if err != nil {
		return Commit{}, fmt.Errorf("the repository has no commit %q", rev)
	}
	fields := strings.SplitN(string(out), "\n", 4)
	if len(fields) < 4 {
		return Commit{}, fmt.Errorf("reading commit %q: %.200q", rev, out)
	}
	at, err := time.Parse(time.RFC3339, fields[2])
	if err != nil {
		return Commit{}, fmt.Errorf("reading commit %q: %w", rev, err)
	}
	return Commit{fields[0], strings.Fields(fields[1]), at, strings.TrimSpace(strings.ToValidUTF8(fields[3], "\uFFFD"))}, nil
}

// Patch returns the change that a commit makes to some files.
func (h *History) Patch(ctx context.Context, commit string, paths []string) ([]byte, error) {
	if _, err := parseHash(commit); err != nil {
		return nil, err
	}
	args := append([]string{"diff-tree", "-r", "-p", "--full-index", "--binary", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
		"--unified=3", "--src-prefix=a/", "--dst-prefix=b/", commit + "^", commit, "--"}, literal(paths)...)
	return h.store.run(ctx, command{limit: MaxPatch, args: args})
}

// Tag returns the version in the newest tag that is reachable from a commit and looks like a version, without the tag's
// prefix, or the highest version if a commit has several such tags. It returns "" if there is no such tag.
func (h *History) Tag(ctx context.Context, commit string) (string, error) {
	versions := map[string]string{} // by the hash of the commit
	for name, hash := range h.refs(tagRefs) {
		m := versionTag.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		// An annotated tag has a hash of its own.
		out, err := h.store.run(ctx, command{limit: 128, args: []string{"rev-parse", "--verify", "--quiet", hash + "^{commit}"}})
		if err != nil {
			continue
		}
		tagged := strings.TrimSpace(string(out))
		if old := versions[tagged]; old == "" || newer(m[1], old) {
			versions[tagged] = m[1]
		}
	}
	if len(versions) == 0 {
		return "", nil
	}
	out, err := h.store.run(ctx, command{limit: 4 << 20, args: []string{"rev-list", "--max-count=50000", commit, "--"}})
	if err != nil {
		return "", fmt.Errorf("reading history: %w", err)
	}
	for hash := range strings.FieldsSeq(string(out)) {
		if v := versions[hash]; v != "" {
			return v, nil
		}
	}
	return "", nil
}

func newer(a, b string) bool {
	x, errX := pep440.Parse(a)
	y, errY := pep440.Parse(b)
	return errX == nil && errY == nil && x.GreaterThan(y)
}

var versionTag = regexp.MustCompile(`^(?:[A-Za-z_.-]*[-_/])?v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)?)$`)

// tagRefs is the prefix of the references that are tags.
const tagRefs = "refs/tags/"

// refs returns the hashes of the references with one of these prefixes, by their names without the prefix.
func (h *History) refs(prefixes ...string) map[string]string {
	out := map[string]string{}
	addRef := func(ref, hash string) {
		for _, prefix := range prefixes {
			if name, ok := strings.CutPrefix(ref, prefix); ok && out[name] == "" {
				if _, err := parseHash(hash); err == nil {
					out[name] = hash
				}
			}
		}
	}
	git := filepath.Dir(h.store.objects)
	_ = filepath.WalkDir(filepath.Join(git, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, err := os.ReadFile(p); err == nil {
				if ref, err := filepath.Rel(git, p); err == nil {
					addRef(filepath.ToSlash(ref), strings.TrimSpace(string(text)))
				}
			}
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(git, "packed-refs")); err == nil {
		for line := range strings.Lines(string(text)) {
			if hash, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				addRef(ref, hash)
			}
		}
	}
	return out
}
