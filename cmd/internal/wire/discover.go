package wire

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/tasks/discover"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

// DiscoverOptions restrict and observe Discover.
type DiscoverOptions struct {
	Newest    time.Time // packages released later are not used; zero: no limit
	Version   string    // of the project, from git
	OnAttempt func(discover.Attempt)
}

// CanDiscover reports whether the sandboxes use interpreters of this machine, which Discover needs.
func (w *Workbench) CanDiscover() bool {
	kind := w.kind(schemas.Task{})
	return kind == "bubblewrap" || kind == "local"
}

// Discover finds out how to run the tests of a repository, by trying setups in sandboxes. The error is a
// *discover.NotFoundError or a *discover.NoPythonError if no setup runs them.
func (w *Workbench) Discover(ctx context.Context, r synth.Repo, s DiscoverOptions) (discover.Result, error) {
	if !w.CanDiscover() {
		return discover.Result{}, fmt.Errorf("setups are found with interpreters of this machine, which a sandbox of kind %s does not have: use bubblewrap", w.kind(r.Task))
	}
	paths := pythonPaths()
	if w.cfg.Sandbox.Python != "" {
		paths = []string{w.cfg.Sandbox.Python}
	}
	return discover.Find(ctx, discover.Config{
		Interpreters: interpreters(ctx, paths), Newest: s.Newest, Version: s.Version, OnAttempt: s.OnAttempt,
		Try: func(ctx context.Context, t schemas.Task, tree *workspace.Tree, variant verify.Variant) (verify.Run, error) {
			v, err := w.verifier(ctx, t, tree)
			if err != nil {
				return verify.Run{}, err
			}
			return v.Observe(ctx, t, tree, nil, variant)
		},
	}, r.Task, r.Tree)
}

// pythonPaths lists where interpreters are usually installed, the system's first.
func pythonPaths() []string {
	out := []string{"/usr/bin/python3"}
	patterns := []string{"/usr/bin/python3.*", "/usr/local/bin/python3*", "/opt/python/*/bin/python3", "/opt/homebrew/bin/python3.*"}
	if home, err := os.UserHomeDir(); err == nil {
		for _, pattern := range []string{".pyenv/versions/*/bin/python3", ".local/share/uv/python/*/bin/python3", ".local/share/mise/installs/python/*/bin/python3",
			".asdf/installs/python/*/bin/python3", ".local/bin/python3.*"} {
			patterns = append(patterns, filepath.Join(home, pattern))
		}
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if name := filepath.Base(path); strings.Trim(strings.TrimPrefix(name, "python"), "0123456789.") == "" {
				out = append(out, path)
			}
		}
	}
	return out
}

// interpreters asks the interpreters at these paths for their versions. It leaves out interpreters that do not start,
// and of several paths to the same interpreter it keeps the first.
func interpreters(ctx context.Context, paths []string) []discover.Interpreter {
	var known drivers.Interpreters
	list := make([]*discover.Interpreter, len(paths))
	targets := make([]string, len(paths))
	var wait sync.WaitGroup
	for i, path := range paths {
		wait.Go(func() {
			p, err := known.Find(ctx, path)
			if err != nil {
				return
			}
			pytest := exec.CommandContext(ctx, path, "-I", "-c", "import pytest").Run() == nil
			list[i], targets[i] = &discover.Interpreter{Path: path, Version: p.Version, Pytest: pytest}, p.Executable
			if path == "/usr/bin/python3" {
				list[i].Path = "" // the system's Python
			}
			if target, err := filepath.EvalSymlinks(p.Executable); err == nil {
				targets[i] = target
			}
		})
	}
	wait.Wait()
	var out []discover.Interpreter
	for i, p := range list {
		if p != nil && !slices.Contains(targets[:i], targets[i]) {
			out = append(out, *p)
		}
	}
	return out
}
