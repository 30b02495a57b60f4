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

// Printer hashes the functions of repositories. It only parses them, so that one kind
// of sandbox serves tasks of all images.
func (w *Workbench) Printer() *synth.Printer {
	kind, c := w.kind(schemas.Task{}), w.cfg.Sandbox
	return &synth.Printer{Store: w.store, Driver: w.drivers[kind], Spec: env.SandboxSpec{
		Label: "hashes", Image: c.Image, Python: c.Python, Workdir: schemas.DefaultWorkdir,
		Limits: env.Limits{MemoryBytes: int64(c.Memory), DiskBytes: int64(c.Disk), Processes: c.Processes, CPUs: c.CPUs},
	}}
}

// HashedRepo is a repository whose functions and tasks are to be hashed.
type HashedRepo struct {
	Repo, Benchmark string
	Tasks           []schemas.Task // of the repository; none if it is a directory

	printer *synth.Printer
	states  []func(context.Context) (env.Tree, error)
}

// Hashed returns the repositories in dirs, or without dirs those of tasks, each once.
func (w *Workbench) Hashed(ctx context.Context, dirs []string, tasks configs.Tasks) ([]*HashedRepo, error) {
	var list []*HashedRepo
	known := map[string]*HashedRepo{}
	add := func(t schemas.Task, state func(context.Context) (env.Tree, error)) {
		name := provenance.Upstream(t)
		if known[name] == nil {
			known[name] = &HashedRepo{Repo: name, Benchmark: provenance.Benchmark(name), printer: w.Printer()}
			list = append(list, known[name])
		}
		known[name].states = append(known[name].states, state)
	}
	if len(dirs) > 0 {
		repos, err := Repositories(dirs, schemas.Task{})
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

// Prints hashes the functions in all states of the repository. unparsed counts the files
// that the sandbox's interpreter cannot parse.
func (h *HashedRepo) Prints(ctx context.Context) (p provenance.Prints, unparsed int, err error) {
	p = provenance.Prints{Schema: provenance.PrintsSchema, Repo: h.Repo, Benchmark: h.Benchmark}
	seen := map[string]bool{}
	for _, state := range h.states {
		tree, err := state(ctx)
		if err != nil {
			return p, 0, fmt.Errorf("reading %s: %w", h.Repo, err)
		}
		if seen[tree.SHA256()] {
			continue
		}
		seen[tree.SHA256()] = true
		functions, skipped, err := h.printer.Functions(ctx, tree)
		if err != nil {
			return p, 0, err
		}
		p.Trees, unparsed = p.Trees+1, unparsed+skipped
		p.Add(functions)
	}
	return p, unparsed, nil
}

// Kinship says which repositories of tasks belong together; the zero value relates none.
type Kinship struct {
	Copies []Copy // of benchmarks' repositories, in the order of the tasks
	Unread int    // files that the sandbox's interpreter cannot parse

	groupOf map[string]string
}

// Copy is a repository that copies one of a benchmark's under another name.
type Copy struct {
	Repo      string `json:"repo"`
	Of        string `json:"of"`
	Benchmark string `json:"benchmark"`
	Shared    int    `json:"shared"`
	Functions int    `json:"functions"`
}

// Group returns the name of a repository's group, which for most is its own name.
func (k Kinship) Group(name string) string { return cmp.Or(k.groupOf[name], name) }

// Groups returns the repositories that belong together, by the name of their group.
func (k Kinship) Groups() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(k.groupOf)) {
		out[k.groupOf[name]] = append(out[k.groupOf[name]], name)
	}
	return out
}

// Kinship compares the functions that the gold patches of tasks fix, in their fixed
// state.
func (w *Workbench) Kinship(ctx context.Context, entries []*taskfile.Entry) (k Kinship, err error) {
	var mended []synth.FixedRepo
	for _, e := range entries {
		m := synth.FixedRepo{Bug: e.Task.BugPatch}
		if m.Bug != "" {
			m.Tree, err = e.Repository()
		} else if m.Gold = e.Task.GoldPatch; m.Gold != "" {
			if m.Tree, err = e.Tree(); err == nil {
				m.Tree, err = taskfile.Apply(m.Tree, []byte(m.Gold))
			}
		}
		if err != nil {
			return k, fmt.Errorf("applying the gold patch of %s: %w: see tasks verify, or use --by repo, which compares no functions", e.Task.InstanceID, err)
		}
		mended = append(mended, m)
	}
	p := w.Printer()
	functions, unparsed, err := synth.FixedFunctions(ctx, p.Driver, p.Spec, mended)
	if err != nil {
		return k, err
	}
	having := map[string][]string{}
	for i, e := range entries {
		for _, f := range functions[i] {
			having[f] = append(having[f], provenance.Upstream(e.Task))
		}
	}
	return Kinship{Unread: unparsed, groupOf: provenance.Groups(having)}, nil
}

// Copies returns the repositories of tasks that copy one of a benchmark in library,
// which may be nil.
func (w *Workbench) Copies(ctx context.Context, entries []*taskfile.Entry, library *provenance.Library) ([]Copy, error) {
	if library == nil {
		return nil, nil
	}
	p := w.Printer()
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
		known := func(other Copy) bool { return other.Repo == name }
		if c.Of, c.Benchmark, c.Shared = library.Copy(functions); c.Of != "" && !slices.ContainsFunc(list, known) {
			list = append(list, c)
		}
	}
	return list, nil
}
