package scaffold

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// checkout is a git repository for a test.
type checkout struct {
	*testing.T
	dir string
}

func newCheckout(t *testing.T) checkout {
	c := checkout{t, t.TempDir()}
	c.git("init", "-q", "-b", "main")
	return c
}

func (c checkout) git(args ...string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_DATE=2024-05-06T07:08:09+02:00")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, commits them and returns the hash of the commit.
func (c checkout) commit(message string, files map[string]string) string {
	c.Helper()
	for name, text := range files {
		full := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			c.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", message)
	return c.git("rev-parse", "HEAD")
}

func (c checkout) history() *workspace.History {
	c.Helper()
	store, err := workspace.Open(c.TempDir())
	if err != nil {
		c.Fatal(err)
	}
	h, err := store.OpenHistory(c.dir)
	if err != nil {
		c.Fatal(err)
	}
	return h
}

func TestReadFix(t *testing.T) {
	c := newCheckout(t)
	start := c.commit("start", map[string]string{"pkg/a.py": "x = 1\n", "tests/test_a.py": "x\n", "README.md": "a\n"})
	fix := c.commit("Fix it\n\nMore.", map[string]string{"pkg/a.py": "x = 2\n", "tests/test_a.py": "y\n", "tests/data.txt": "d\n", "CHANGES.rst": "c\n", "setup.cfg": "[a]\n"})
	c.git("tag", "-a", "-m", "v", "v1.2.3")
	c.commit("docs", map[string]string{"README.md": "b\n"})
	h := c.history()
	for _, rev := range []string{fix, fix[:8], "HEAD~1", "v1.2.3", "main~1"} {
		f, err := ReadFix(t.Context(), h, rev)
		if err != nil {
			t.Errorf("%s: %v", rev, err)
			continue
		}
		if f.Hash != fix || f.Parent != start || f.Message != "Fix it\n\nMore." || !f.Time.Equal(time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC)) ||
			!slices.Equal(f.Files, []string{"pkg/a.py", "setup.cfg"}) || !slices.Equal(f.TestFiles, []string{"tests/data.txt", "tests/test_a.py"}) ||
			!slices.Equal(f.OmittedFiles, []string{"CHANGES.rst"}) || strings.Contains(f.Gold, "tests/") || !strings.Contains(f.Gold, "-x = 1\n+x = 2") || strings.Contains(f.Tests, "pkg/") {
			t.Errorf("%s: %+v", rev, f)
		}
	}
	for rev, want := range map[string]string{
		"HEAD": "it changes no Python file outside of the tests", start: "it has 0 parents", "none": `the repository has no commit "none"`,
		"--all": "no commit", "HEAD:pkg": "no commit", "": "no commit",
	} {
		_, err := ReadFix(t.Context(), h, rev)
		if e, ok := errors.AsType[*FixError](err); !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, want %s", rev, err, want)
		}
	}
	for rev, want := range map[string]string{"HEAD": "1.2.3", fix: "1.2.3", start: ""} {
		commit, err := h.FindCommit(t.Context(), rev)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Tag(t.Context(), commit.Hash); got != want || err != nil {
			t.Errorf("%s: version %q, want %q, %v", rev, got, want, err)
		}
	}
}

func TestWrite(t *testing.T) {
	c := newCheckout(t)
	c.commit("start", map[string]string{"pkg/a.py": "x = 1\n", "run.sh": "#!/bin/sh\n"})
	if err := errors.Join(os.Chmod(filepath.Join(c.dir, "run.sh"), 0o755), os.Symlink("pkg/a.py", filepath.Join(c.dir, "link"))); err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.FromDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "deep", "task")
	task := schemas.Task{InstanceID: "a", Instructions: "One: two\nthree\n", Entrypoint: "run", CreatedAt: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC), GoldPatch: "g\n",
		Setup: []string{"a: b"}, Tests: schemas.TestSpec{FailToPass: []string{"t::a[x: y]"}}}
	if err := Write(dir, task, tree, map[string]string{"": "Top.", "entrypoint": "Two\nlines.", "tests.fail_to_pass": "Why."}); err != nil {
		t.Fatal(err)
	}
	back, err := workspace.FromDir(filepath.Join(dir, "repo"))
	if err != nil || back.SHA256() != tree.SHA256() {
		t.Errorf("the written repository differs from the given one: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "task.yaml"))
	want := `# Top.
instance_id: a
instructions: |
  One: two
  three
setup:
  - 'a: b'
# Two
# lines.
entrypoint: run
created_at: 2024-05-06
tests:
  # Why.
  fail_to_pass:
    - 't::a[x: y]'
`
	if err != nil || string(text) != want {
		t.Errorf("%s\nwant\n%s%v", text, want, err)
	}
	if err := Write(dir, task, tree, nil); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
}
