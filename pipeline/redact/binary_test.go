package redact

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitPatch returns the binary patch of git for a change of a file from before to after.
func gitPatch(t *testing.T, before, after string) string {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	write := func(content string) {
		if err := os.WriteFile(filepath.Join(dir, "x.bin"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
	}
	write(before)
	git("commit", "-qm", "a")
	write(after)
	return git("diff", "--cached", "--binary")
}

// Secrets in the compressed content of a binary patch are found.
func TestSecretsInBinaryPatches(t *testing.T) {
	noise := strings.Repeat("\x00\x01\xfe\xff~", 40)
	for _, kind := range []string{"github_token", "anthropic_key", "private_key"} {
		patch := gitPatch(t, noise, noise+"k = "+planted[kind]+"\n"+noise)
		if !strings.Contains(patch, binaryPatch) {
			t.Fatalf("git wrote no binary patch: %q", patch)
		}
		r := New(nil)
		got := r.Text(patch)
		if r.Counts()[kind] == 0 || strings.Count(got, "[REDACTED:"+kind+":1]") != r.Counts()[kind] || !strings.HasPrefix(got, "diff --git a/x.bin b/x.bin\n") {
			t.Errorf("%s: %v: %q", kind, r.Counts(), got)
		}
		if again := New(nil).Text(got); again != got {
			t.Errorf("%s: redacting again changed the patch: %q", kind, again)
		}
	}
	known := gitPatch(t, "a\x00", "b\x00 counting-house-7 \x00")
	if got := New(NewKnown([]string{"counting-house-7"})).Text(known); !strings.Contains(got, "[REDACTED:known:1]") {
		t.Errorf("%q", got)
	}
	clean := gitPatch(t, noise, noise+"nothing"+noise)
	if got := New(NewKnown([]string{"counting-house-7"})).Text(clean); got != clean {
		t.Errorf("%q became %q", clean, got)
	}
	for _, broken := range []string{binaryPatch + "literal 9\nzabcde\n\n", binaryPatch + "delta 1\nAaaaaa", binaryPatch + "literal 3\nA\"\"\"\"\"\n"} {
		New(nil).Text(broken)
	}
}
