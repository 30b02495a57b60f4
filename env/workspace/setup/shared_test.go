package setup

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// blockingDriver is a driver whose Start blocks until the test closes release.
type blockingDriver struct {
	env.Driver
	release chan struct{}
}

func (blockingDriver) Name() string { return "stuck" }

func (d blockingDriver) Start(context.Context, env.SandboxSpec) (env.Sandbox, error) {
	<-d.release
	return nil, errors.New("released")
}

// A caller that waits for another caller's build stops waiting when its context ends.
func TestWaitingForABuildEndsWithTheContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	synctest.Test(t, func(t *testing.T) {
		b := &Builder{Cache: Cache{Dir: dir}}
		driver := blockingDriver{release: make(chan struct{})}
		prepare := func(ctx context.Context) chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := b.Prepare(ctx, driver, env.SandboxSpec{}, schemas.Task{InstanceID: "x", Setup: []string{"true"}}, tree(""))
				ended <- err
			}()
			return ended
		}
		first := prepare(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := prepare(ctx)
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the waiting caller got %v, want its own cancellation", err)
		}
		close(driver.release)
		if err := <-first; err == nil {
			t.Error("the build succeeded without a sandbox")
		}
		if len(b.locks) != 0 {
			t.Errorf("%d locks are left although no build runs", len(b.locks))
		}
	})
}

// A result belongs to the repository and the interpreter that it was built with.
func TestResultsAreKeptPerTreeAndInterpreter(t *testing.T) {
	b := open(t, "bubblewrap")
	own := filepath.Join(t.TempDir(), "own")
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "venv", "--without-pip", own).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		tree   tree
		python string
	}{{"seven", ""}, {"eight", ""}, {"eight", filepath.Join(own, "bin", "python3")}} {
		spec := b.spec
		spec.Python = c.python
		spec, err := b.Prepare(t.Context(), b.driver, spec, schemas.Task{InstanceID: "x", Setup: []string{install}}, c.tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.output(spec, `python3 -c 'import extra; print(extra.x)'`); got != string(c.tree)+"\n" {
			t.Errorf("tree %s, interpreter %q: the set-up read %q", c.tree, c.python, got)
		}
	}
	if kept := b.kept(); len(kept) != 3 {
		t.Errorf("%d results are kept for three different set-ups", len(kept))
	}
}
