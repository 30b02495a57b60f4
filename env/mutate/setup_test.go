package mutate

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

const workdir = "/repo"

// bench is a Mutator in a sandbox with a copy of a directory.
type bench struct {
	*Mutator
	t   testing.TB
	sb  env.Sandbox
	dir string // the same files on the host
}

func start(t testing.TB, dir string) *bench {
	t.Helper()
	sb := envtest.Sandbox(t, "local", env.SandboxSpec{Label: "mutate-test", Workdir: workdir})
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sb.TarIn(t.Context(), workdir, &tree); err != nil {
		t.Fatal(err)
	}
	m, err := Start(t.Context(), Config{Sandbox: sb, Workdir: workdir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &bench{m, t, sb, dir}
}

// sites lists the sites of files that must not be skipped.
func (b *bench) sites(files ...string) []Site {
	b.t.Helper()
	var ask []File
	for _, f := range files {
		ask = append(ask, File{Path: f})
	}
	got, err := b.Enumerate(b.t.Context(), ask)
	if err != nil || len(got.Skipped) > 0 {
		b.t.Fatalf("%v, skipped %v", err, got.Skipped)
	}
	return got.Sites
}

func (b *bench) apply(sites ...Site) Mutation {
	b.t.Helper()
	m, err := b.Apply(b.t.Context(), sites)
	if err != nil {
		b.t.Fatalf("%v: %v", sites, err)
	}
	return m
}

// patched returns a file after git has applied a patch to it.
func (b *bench) patched(name string, patch []byte) []byte {
	b.t.Helper()
	dir := b.t.TempDir()
	raw, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	to := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, raw, 0o644)); err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("git apply: %v\n%s\n%s", err, out, patch)
	}
	raw, err = os.ReadFile(to)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}
