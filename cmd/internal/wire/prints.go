package wire

import (
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

// Printer knows repositories by their functions. What it reads it only parses: one
// sandbox does for all tasks, whatever images they run in.
func (w *Workbench) Printer() *synth.Printer {
	kind, c := w.kind(schemas.Task{}), w.cfg.Sandbox
	return &synth.Printer{Store: w.store, Driver: w.drivers[kind], Spec: env.SandboxSpec{
		Label: "hashes", Image: c.Image, Python: c.Python, Workdir: schemas.DefaultWorkdir,
		Limits: env.Limits{MemoryBytes: int64(c.Memory), DiskBytes: int64(c.Disk), Processes: c.Processes, CPUs: c.CPUs},
	}}
}

// Hashed is a repository with its states, of which prints are made.
type Hashed struct {
	Repo, Benchmark string
	Tasks           []schemas.Task // of it; none where directories were named

	printer *synth.Printer
	states  []func(context.Context) (env.Tree, error)
}

// Hashed lists the repositories of directories, or those of tasks where none is
// given, each once.
func (w *Workbench) Hashed(ctx context.Context, dirs []string, tasks configs.Tasks) ([]*Hashed, error) {
	var list []*Hashed
	known := map[string]*Hashed{}
	add := func(t schemas.Task, state func(context.Context) (env.Tree, error)) {
		name := provenance.Upstream(t)
		if known[name] == nil {
			known[name] = &Hashed{Repo: name, Benchmark: provenance.Benchmark(name), printer: w.Printer()}
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
		h.Benchmark, h.Tasks = first(h.Benchmark, provenance.BenchmarkOf(t)), append(h.Tasks, t)
	}
	return list, nil
}

// Prints reads all states of the repository; unread counts the files that are no
// Python of the sandbox's interpreter.
func (h *Hashed) Prints(ctx context.Context) (p provenance.Prints, unread int, err error) {
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
		p.Trees, unread = p.Trees+1, unread+skipped
		p.Add(functions)
	}
	return p, unread, nil
}

// Kinship is what repositories of tasks have in common; the zero one is nothing.
type Kinship struct {
	Copies []Copy // of repositories of benchmarks, in the order of the tasks
	Unread int    // files that are no Python of the sandbox's interpreter

	together map[string]string
}

// Copy is a repository that is one of a benchmark's under another name.
type Copy struct {
	Repo      string `json:"repo"`
	Of        string `json:"of"`
	Benchmark string `json:"benchmark"`
	Shared    int    `json:"shared"`
	Functions int    `json:"functions"`
}

// Group is the name by which a repository goes with others; its own for most.
func (k Kinship) Group(name string) string { return first(k.together[name], name) }

// Groups are the repositories that go together, by the name they go by.
func (k Kinship) Groups() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(k.together)) {
		out[k.together[name]] = append(out[k.together[name]], name)
	}
	return out
}

// Kinship compares the functions that the gold patches of tasks mend, as they are
// afterwards.
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
			return k, fmt.Errorf("mending %s: %w: tasks verify tells more; --by repo compares no functions", e.Task.InstanceID, err)
		}
		mended = append(mended, m)
	}
	p := w.Printer()
	functions, unread, err := synth.FixedFunctions(ctx, p.Driver, p.Spec, mended)
	if err != nil {
		return k, err
	}
	having := map[string][]string{}
	for i, e := range entries {
		for _, f := range functions[i] {
			having[f] = append(having[f], provenance.Upstream(e.Task))
		}
	}
	return Kinship{Unread: unread, together: provenance.Together(having)}, nil
}

// Copies compares the repositories of tasks with those of benchmarks; library may
// be nil.
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
