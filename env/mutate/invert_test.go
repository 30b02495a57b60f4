package mutate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// repo is a git repository.
type repo struct {
	t   *testing.T
	dir string
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files and returns the commit's hash.
func (r repo) commit(files map[string]string) string {
	r.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
	return r.git("rev-parse", "HEAD")
}

const (
	broken = "def top(a):\n    return a[0]\n\n\ndef total(a):\n    n = 0\n    for x in a:\n        n = x\n    return n\n"
	fixed  = "def top(a):\n    return a[0]\n\n\ndef total(a):\n    n = 0\n    for x in a:\n        n += x\n    return n\n"
)

func isTest(path string) bool { return strings.HasPrefix(filepath.Base(path), "test_") }

func newRepo(t *testing.T) repo {
	r := repo{t, t.TempDir()}
	r.git("init", "-q")
	return r
}

// trap adds programs to the repository's configuration that git must not run.
func (r repo) trap(t *testing.T) {
	trap := filepath.Join(t.TempDir(), "sprung")
	for _, key := range []string{"core.fsmonitor", "diff.external", "core.pager"} {
		r.git("config", key, "touch "+trap)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(trap); err == nil {
			t.Error("a program that the repository's configuration names was run")
		}
	})
}

func (r repo) history() *workspace.History {
	r.t.Helper()
	store, err := workspace.Open(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := store.OpenHistory(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func TestNewestCommitThatTouchesCodeIsInverted(t *testing.T) {
	r := newRepo(t)
	r.commit(map[string]string{"calc.py": broken, "README": "x"})
	fix := r.commit(map[string]string{"calc.py": fixed, "test_calc.py": "def test_total():\n    assert total([1, 2]) == 3\n"})
	r.commit(map[string]string{"test_calc.py": "def test_total():\n    assert total([1, 2, 3]) == 6\n"})
	r.commit(map[string]string{"README": "y", "calc.py": "# Sums.\n\n" + fixed})
	note := r.git("rev-parse", "HEAD")
	r.git("gc", "-q") // packed objects and references
	r.trap(t)
	h := r.history()
	commits, err := CodeCommits(t.Context(), h, 5, 100, isTest)
	if err != nil || strings.Join(commits, " ") != note+" "+fix {
		t.Fatalf("%v, %v", commits, err)
	}
	b := start(t, r.dir)
	m, err := b.Invert(t.Context(), h, fix, isTest)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.patched("calc.py", m.Patch)); got != "# Sums.\n\n"+broken {
		t.Errorf("got\n%s", got)
	}
	if len(m.Funcs) != 1 || m.Funcs[0].Name != "total" || m.Commit != fix || m.BodyHash == "" || strings.Contains(string(m.Patch), "test_calc") {
		t.Errorf("%+v", m)
	}
	var refused *RefusedError
	if _, err := b.Invert(t.Context(), h, note, isTest); !errors.As(err, &refused) || !strings.Contains(err.Error(), "nothing that runs") {
		t.Errorf("a commit that changes only a comment: %v", err)
	}
	if _, err := b.Invert(t.Context(), h, r.git("rev-parse", "HEAD~1"), isTest); !errors.As(err, &refused) || !strings.Contains(err.Error(), "no code") {
		t.Errorf("a commit that changes only a test: %v", err)
	}
}

// The reverse diff does not apply because nearby lines have changed, but the function has not.
func TestFunctionsAreRestoredIfTheReverseDiffDoesNotApply(t *testing.T) {
	r := newRepo(t)
	r.commit(map[string]string{"calc.py": broken})
	fix := r.commit(map[string]string{"calc.py": fixed})
	moved := "class Calc:\n    pass\n\n\ndef total(a):\n    # sums up\n    n = 0\n    # one by one\n    for x in a:\n        n += x  # yes\n    # done\n    return n\n\n\ndef top(a):\n    return a[1]\n"
	r.commit(map[string]string{"calc.py": moved})
	b := start(t, r.dir)
	m, err := b.Invert(t.Context(), r.history(), fix, isTest)
	if err != nil {
		t.Fatal(err)
	}
	want := "class Calc:\n    pass\n\n\n" + broken[strings.Index(broken, "def total"):] + "\n\ndef top(a):\n    return a[1]\n"
	if got := string(b.patched("calc.py", m.Patch)); got != want {
		t.Errorf("got\n%s", got)
	}
	if len(m.Funcs) != 1 || m.Funcs[0].Name != "total" {
		t.Errorf("%+v", m.Funcs)
	}
	r.commit(map[string]string{"calc.py": strings.ReplaceAll(moved, "n += x", "n = n + x")})
	b = start(t, r.dir)
	var refused *RefusedError
	if _, err := b.Invert(t.Context(), r.history(), fix, isTest); !errors.As(err, &refused) || !strings.Contains(err.Error(), "changed again") {
		t.Errorf("got %v", err)
	}
}

func TestWorkspaceMustBeAtHead(t *testing.T) {
	r := newRepo(t)
	r.commit(map[string]string{"calc.py": broken})
	fix := r.commit(map[string]string{"calc.py": fixed})
	b := start(t, r.dir)
	if err := b.sb.WriteFile(context.Background(), workdir+"/calc.py", []byte(fixed+"\n"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Invert(t.Context(), r.history(), fix, isTest); err == nil || !strings.Contains(err.Error(), "not as in the commit") {
		t.Errorf("got %v", err)
	}
}
