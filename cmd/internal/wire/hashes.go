package wire

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

// FunctionHasher returns a FunctionHasher, which hashes the functions of repositories. It
// only parses them, so it can use the same sandbox for tasks of all images.
func (w *Workbench) FunctionHasher() *synth.FunctionHasher {
	kind, c := w.kind(schemas.Task{}), w.cfg.Sandbox
	return &synth.FunctionHasher{Store: w.store, Driver: w.drivers[kind], Spec: env.SandboxSpec{
		Label: "hashes", Image: c.Image, Python: c.Python, Workdir: schemas.DefaultWorkdir,
		Limits: env.Limits{MemoryBytes: int64(c.Memory), DiskBytes: int64(c.Disk), Processes: c.Processes, CPUs: c.CPUs},
	}}
}

// HashedRepo is a repository whose functions and tasks are to be hashed.
type HashedRepo struct {
	Repo, Benchmark string
	Tasks           []schemas.Task // of the repository; nil if it was named as a directory

	hasher *synth.FunctionHasher
	trees  []func(context.Context) (env.Tree, error)
}

// HashedRepos returns the repositories in dirs, or the repositories of tasks if dirs is
// empty, each once.
func (w *Workbench) HashedRepos(ctx context.Context, dirs []string, tasks configs.Tasks) ([]*HashedRepo, error) {
	var list []*HashedRepo
	known := map[string]*HashedRepo{}
	add := func(t schemas.Task, tree func(context.Context) (env.Tree, error)) {
		name := provenance.Upstream(t)
		if known[name] == nil {
			known[name] = &HashedRepo{Repo: name, Benchmark: provenance.Benchmark(name), hasher: w.FunctionHasher()}
			list = append(list, known[name])
		}
		known[name].trees = append(known[name].trees, tree)
	}
	if len(dirs) > 0 {
		repos, err := Repositories(dirs, schemas.Task{}, func(string) {})
		if err != nil {
			return nil, err
		}
		for _, r := range repos {
			add(r.Task, func(context.Context) (env.Tree, error) { return r.Tree, nil })
		}
		return list, nil
	}
	chosen, err := SelectTasks(ctx, w.Source, tasks)
	if err != nil {
		return nil, err
	}
	for _, t := range chosen {
		add(t, func(ctx context.Context) (env.Tree, error) { return w.Source.Tree(ctx, t.InstanceID) })
		h := known[provenance.Upstream(t)]
		h.Benchmark, h.Tasks = cmp.Or(h.Benchmark, provenance.BenchmarkOf(t)), append(h.Tasks, t)
	}
	return list, nil
}

// Hashes hashes the functions of all trees of the repository. unparsed counts the files
// that the sandbox's interpreter cannot parse.
func (h *HashedRepo) Hashes(ctx context.Context) (p provenance.RepoHashes, unparsed int, err error) {
	p = provenance.RepoHashes{Schema: provenance.RepoHashesSchema, Repo: h.Repo, Benchmark: h.Benchmark}
	seen := map[string]bool{}
	for _, readTree := range h.trees {
		tree, err := readTree(ctx)
		if err != nil {
			return p, 0, fmt.Errorf("reading %s: %w", h.Repo, err)
		}
		if seen[tree.SHA256()] {
			continue
		}
		seen[tree.SHA256()] = true
		functions, skipped, err := h.hasher.Functions(ctx, tree)
		if err != nil {
			return p, 0, err
		}
		p.Trees, unparsed = p.Trees+1, unparsed+skipped
		p.Add(functions)
	}
	return p, unparsed, nil
}

// RepoGroups holds groups of repositories that a split must keep together. In the zero value, each
// repository is its own group.
type RepoGroups struct {
	Copies   []Copy // of benchmarks' repositories, in the order of the tasks
	Unparsed int    // number of files that the sandbox's interpreter cannot parse

	groupOf map[string]string
}

// Copy is a repository that copies a benchmark's repository under another name.
type Copy struct {
	Repo      string `json:"repo"`
	Original  string `json:"of"` // the benchmark's repository
	Benchmark string `json:"benchmark"`
	Shared    int    `json:"shared"`    // number of functions that are also in Original
	Functions int    `json:"functions"` // number of functions
}

// Group returns the name of a repository's group; a repository that is alone is its own
// group.
func (k RepoGroups) Group(name string) string { return cmp.Or(k.groupOf[name], name) }

// Groups returns the groups of more than one repository, by name.
func (k RepoGroups) Groups() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(k.groupOf)) {
		out[k.groupOf[name]] = append(out[k.groupOf[name]], name)
	}
	return out
}

// RepoGroups groups the repositories of tasks: two belong together if their tasks fix the same
// function. It compares the functions in their fixed state.
func (w *Workbench) RepoGroups(ctx context.Context, entries []*taskfile.Entry) (k RepoGroups, err error) {
	var fixed []synth.FixedRepo
	for _, e := range entries {
		repo := synth.FixedRepo{Bug: e.Task.BugPatch}
		if repo.Bug != "" {
			repo.Tree, err = e.Repository()
		} else if repo.Gold = e.Task.GoldPatch; repo.Gold != "" {
			if repo.Tree, err = e.Tree(); err == nil {
				repo.Tree, err = taskfile.Apply(repo.Tree, []byte(repo.Gold))
			}
		}
		if err != nil {
			return k, fmt.Errorf("applying the gold patch of %s: %w: see tasks verify, or use --by repo, which compares no functions", e.Task.InstanceID, err)
		}
		fixed = append(fixed, repo)
	}
	p := w.FunctionHasher()
	functions, unparsed, err := synth.FixedFunctions(ctx, p.Driver, p.Spec, fixed)
	if err != nil {
		return k, err
	}
	reposByFunction := map[string][]string{}
	for i, e := range entries {
		for _, f := range functions[i] {
			reposByFunction[f] = append(reposByFunction[f], provenance.Upstream(e.Task))
		}
	}
	return RepoGroups{Unparsed: unparsed, groupOf: provenance.Groups(reposByFunction)}, nil
}

// Copies returns the repositories of tasks that copy a benchmark's repository in library.
// It returns nil if library is nil.
func (w *Workbench) Copies(ctx context.Context, entries []*taskfile.Entry, library *provenance.Library) ([]Copy, error) {
	if library == nil {
		return nil, nil
	}
	p := w.FunctionHasher()
	var list []Copy
	seen := map[string]bool{}
	for _, e := range entries {
		tree, err := e.Repository()
		if err != nil {
			return nil, err
		}
		name := provenance.Upstream(e.Task)
		if key := name + " " + tree.SHA256(); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		functions, _, err := p.Functions(ctx, tree)
		if err != nil {
			return nil, err
		}
		c := Copy{Repo: name, Functions: len(functions)}
		sameRepo := func(other Copy) bool { return other.Repo == name }
		if c.Original, c.Benchmark, c.Shared = library.CopiedFrom(functions); c.Original != "" && !slices.ContainsFunc(list, sameRepo) {
			list = append(list, c)
		}
	}
	return list, nil
}
