package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A branch whose name looks like a version is not a release, even if its commit is newer than
// the newest tag.
func TestTagIgnoresBranches(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	git("tag", "-a", "-m", "release", "v1.2.0")
	for _, tag := range []string{"v1.9.0", "v1.10.0", "v1.10.0rc1", "v1.2.1"} {
		git("tag", tag) // the highest version of a commit counts
	}
	git("commit", "-q", "--allow-empty", "-m", "second")
	git("branch", "2.0")
	git("update-ref", "refs/remotes/origin/3.0", "HEAD")
	store, err := Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	for _, packed := range []bool{false, true} {
		if packed {
			git("pack-refs", "--all")
		}
		h, err := store.OpenHistory(dir)
		if err != nil {
			t.Fatal(err)
		}
		if version, err := h.Tag(t.Context(), h.Head()); err != nil || version != "1.10.0" {
			t.Errorf("packed references %v: version %q, %v; want 1.10.0", packed, version, err)
		}
		if _, err := h.FindCommit(t.Context(), "2.0"); err != nil {
			t.Errorf("packed references %v: %v", packed, err)
		}
	}
}
