package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

// DefaultEntrypoint is the command that runs the tests of a repository if none is
// configured.
const DefaultEntrypoint = "python -m pytest -q"

// FactoryConfig returns cfg with the store and the sandboxes of the workbench.
func (w *Workbench) FactoryConfig(cfg synth.Config) synth.Config {
	cfg.Store = w.store
	cfg.Sandbox = func(ctx context.Context, t schemas.Task, tree env.Tree) (env.Driver, env.SandboxSpec, error) {
		d := w.Driver(t)
		spec, err := w.spec(ctx, d, t, tree)
		return d, spec, err
	}
	return cfg
}

// BugWriter connects the model of section llm, which writes bugs and reports, and checks
// that it works.
func BugWriter(ctx context.Context, cfg configs.Config, getenv func(string) string, warn io.Writer) (*synth.Model, error) {
	l := cfg.LLM
	if l.Model == "" || l.AllEndpoints()[0].BaseURL == "" && l.Provider == "openai" {
		return nil, errors.New("reports and bugs of the kind model are written by a model: set llm.model and llm.base_url (for example -p llm.base_url=http://127.0.0.1:8000/v1)")
	}
	if err := checkModels(cfg); err != nil {
		return nil, err
	}
	cfg.Agent.Kind = "simple" // an agent without tools
	a := &Agent{cfg: cfg, Warn: warn}
	client, err := a.openModel("llm", l, getenv)
	if err != nil {
		return nil, err
	}
	return &synth.Model{Client: client, Sampling: sampling(l)}, a.Check(ctx)
}

// HealthyRepos returns the repositories of tasks with their gold patches applied. Tasks with
// the same result share one repository.
func (w *Workbench) HealthyRepos(ctx context.Context, tasks []schemas.Task) ([]synth.Repo, error) {
	var out []synth.Repo
	seen := map[string]bool{}
	for _, t := range tasks {
		tree, err := w.Source.Tree(ctx, t.InstanceID)
		if err != nil {
			return nil, fmt.Errorf("reading the repository of %s: %w", t.InstanceID, err)
		}
		base, ok := tree.(*workspace.Tree)
		if !ok {
			return nil, fmt.Errorf("the source %s has no repositories that can be changed: write its tasks to a task file first", w.Source.Name())
		}
		healthy, err := taskfile.Apply(base, []byte(t.GoldPatch))
		if err != nil {
			return nil, fmt.Errorf("applying the gold patch of %s: %w", t.InstanceID, err)
		}
		if key := healthy.SHA256() + t.Entrypoint; !seen[key] {
			seen[key] = true
			out = append(out, synth.Repo{Task: t, Tree: healthy})
		}
	}
	return out, nil
}

// Repositories reads healthy repositories from directories. Each path is a repository or a
// directory of repositories. base says how their tests run.
func Repositories(paths []string, base schemas.Task, warn func(string)) ([]synth.Repo, error) {
	var out []synth.Repo
	for _, path := range paths {
		list, others, err := repositoriesIn(path)
		if err != nil {
			return nil, err
		}
		if list[0] != path && len(list) == 1 {
			warn(fmt.Sprintf("%s is not a Python project: using %s, which it contains", path, list[0]))
		}
		if len(others) > 0 {
			warn(fmt.Sprintf("left out of %s, because they contain no Python project: %s", path, strings.Join(others, ", ")))
		}
		for _, dir := range list {
			r, err := readRepository(dir, base)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// isRepository reports whether a directory looks like a Python repository or a checkout.
func isRepository(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(list, func(e os.DirEntry) bool {
		if strings.HasSuffix(e.Name(), ".py") {
			return !e.IsDir() // a checkout may be named boolean.py
		}
		return slices.Contains([]string{"pyproject.toml", "setup.cfg", ".git", "tests", "test", "src"}, e.Name())
	})
}

// invalidIDChars matches characters that an instance id cannot contain.
var invalidIDChars = regexp.MustCompile(`[^A-Za-z0-9._+-]+`)

// repositoryName returns the name of the tasks of a repository: the directory's name, without
// characters that an instance id cannot contain.
func repositoryName(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Trim(invalidIDChars.ReplaceAllString(filepath.Base(full), "-"), "-.")
	if !taskfile.InstancePattern.MatchString(name) {
		return "", fmt.Errorf("%s: the directory's name cannot become the name of a task: rename it", dir)
	}
	return name, nil
}

// readRepository reads a repository and completes base with its name, origin and license.
func readRepository(dir string, base schemas.Task) (synth.Repo, error) {
	t := base
	var err error
	if t.InstanceID, err = repositoryName(dir); err != nil {
		return synth.Repo{}, err
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return synth.Repo{}, err
	}
	snapshot, err := workspace.FromDir(dir)
	if err != nil {
		return synth.Repo{}, err
	}
	origin, commit := readCheckout(full)
	t.RepoSource, t.BaseCommit = provenance.Remote(origin), commit
	if t.Repo = provenance.Hosted(t.RepoSource); t.Repo == "" {
		t.Repo = "local/" + t.InstanceID
	}
	if t.License == "" {
		t.License, _ = sources.License(snapshot)
	}
	r := synth.Repo{Task: t, Tree: snapshot}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		r.History = dir
	}
	return r, nil
}

var originURL = regexp.MustCompile(`\[remote "origin"\]\n(?:[^\[\n]*\n)*?\s*url\s*=\s*(.+)`)

// readCheckout returns the URL of the remote origin and the current commit of a git work
// tree, each "" if unknown. It does not run git.
func readCheckout(dir string) (origin, commit string) {
	git := filepath.Join(dir, ".git")
	config, err := os.ReadFile(filepath.Join(git, "config"))
	if m := originURL.FindSubmatch(config); err == nil && m != nil {
		origin = strings.Trim(strings.TrimSpace(string(m[1])), `"`)
	}
	commit, err = workspace.Head(git)
	if err != nil {
		commit = ""
	}
	return origin, commit
}
