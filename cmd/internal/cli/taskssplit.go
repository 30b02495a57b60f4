package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

type splitFlags struct {
	ConfigFlags
	by     string
	shares [3]float64 // of train, validation and test
	salt   string
	allow  bool     // --allow-benchmarks
	hashes []string // files
	dir    string
	asJSON bool
}

func newTasksSplit(s *State) *cobra.Command {
	var f splitFlags
	c := &cobra.Command{
		Use: "split FILE...", Short: "Split task files by repository into train, validation and test",
		Long: `Split task files into train.jsonl, validation.jsonl and test.jsonl. The hash of
a repository's canonical upstream name decides its part, so that all its tasks,
mirrors and forks go together, and new repositories do not move old ones.

Repositories whose tasks fix the same function (equal in name and code, with at
least three statements) stay together; the hash of the name that sorts first
decides. With --by repo, only names count, and no sandbox is opened to read the
code.

Repositories of public benchmarks, recognized by name or, with
--benchmark-hashes, by their functions, go only into test; --allow-benchmarks
lifts this rule.`,
		Example: "  tracesmith tasks split bugs/tasks.jsonl --train 0.9 --val 0.05 --test 0.05",
		Args:    RangeArgs(1, -1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	fl := c.Flags()
	fl.StringVar(&f.by, "by", splitByFunction, "what must not be divided between parts: "+splitByFunction+" (repositories that share one) or "+splitByRepo)
	fl.Float64Var(&f.shares[0], "train", 0.9, "share of repositories in train")
	fl.Float64Var(&f.shares[1], "val", 0.05, "share of repositories in validation")
	fl.Float64Var(&f.shares[2], "test", 0.05, "share of repositories in test")
	fl.StringVar(&f.salt, "salt", provenance.Salt, "text that changes which repository goes where")
	fl.BoolVar(&f.allow, "allow-benchmarks", false, "treat repositories of public benchmarks like any other")
	fl.StringSliceVar(&f.hashes, "benchmark-hashes", nil, "files that \"tasks hashes\" wrote: copies of these repositories belong to the benchmark")
	fl.StringVarP(&f.dir, "out", "o", "", "output directory (default: directory of the first file)")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// Values of --by.
const (
	splitByRepo     = "repo"
	splitByFunction = "function"
)

// splitPart is one part in the output.
type splitPart struct {
	Split string `json:"split"`
	File  string `json:"file"`
	Tasks int    `json:"tasks"`
	Repos int    `json:"repos"`
}

// splitOutput is what tasks split --json prints.
type splitOutput struct {
	Schema       string              `json:"schema"`
	Parts        []splitPart         `json:"parts"`
	ListsVersion int                 `json:"lists_version"`
	Benchmarks   []string            `json:"benchmark_repos"` // in test because of their names
	Copies       []wire.Copy         `json:"benchmark_copies,omitempty"`
	Groups       map[string][]string `json:"groups,omitempty"` // repositories that share functions, by the name that sorts first
	Unparsed     int                 `json:"unread_files,omitempty"`
}

func (f *splitFlags) run(ctx context.Context, s *State, names []string) error {
	if f.by != splitByRepo && f.by != splitByFunction {
		return Usage(fmt.Errorf("--by %s: tasks can be split by %s or by %s", f.by, splitByFunction, splitByRepo))
	}
	if _, err := provenance.Split("", f.salt, f.shares); err != nil {
		return Usage(fmt.Errorf("--train, --val and --test: %w", err))
	}
	entries, err := readTaskFiles(ctx, names)
	if err != nil {
		return Usage(err)
	}
	library, err := readLibrary(f.hashes)
	if err != nil {
		return err
	}
	f.dir = cmp.Or(f.dir, filepath.Dir(names[0]))
	var groups wire.RepoGroups
	if f.by == splitByFunction || library != nil {
		if groups, err = f.repoGroups(ctx, s, entries, library); err != nil {
			return err
		}
	}
	out := splitOutput{Schema: "tracesmith.split/1", ListsVersion: provenance.ListVersion, Copies: groups.Copies, Unparsed: groups.Unparsed, Groups: groups.Groups()}
	if out.Parts, out.Benchmarks, err = f.write(entries, groups); err != nil {
		return err
	}
	if f.asJSON {
		return PrintJSON(s, out)
	}
	printSplit(s, out)
	return nil
}

// readTaskFiles reads several task files. It returns an error if a task is in two of them.
func readTaskFiles(ctx context.Context, names []string) (entries []*taskfile.Entry, err error) {
	seen := map[string]string{}
	for _, name := range names {
		list, err := taskfile.Read(ctx, name, "")
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if other := seen[e.Task.InstanceID]; other != "" {
				return nil, fmt.Errorf("the task %s is in %s and in %s: take it out of one, or split the files one by one", e.Task.InstanceID, other, name)
			}
			seen[e.Task.InstanceID] = name
		}
		entries = append(entries, list...)
	}
	return entries, nil
}

// repoGroups finds the repositories that belong together and those that copy a benchmark's
// repository.
func (f *splitFlags) repoGroups(ctx context.Context, s *State, entries []*taskfile.Entry, library *provenance.Library) (groups wire.RepoGroups, err error) {
	cfg, err := f.Load(s)
	if err != nil {
		return groups, err
	}
	bench, err := wire.NewWorkbench(ctx, cfg, s.Host())
	if err != nil {
		return groups, Usage(err)
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	if f.by == splitByFunction {
		if groups, err = bench.RepoGroups(ctx, entries); err != nil {
			return groups, Usage(err)
		}
	}
	groups.Copies, err = bench.Copies(ctx, entries, library)
	return groups, err
}

func printSplit(s *State, out splitOutput) {
	for _, p := range out.Parts {
		fmt.Fprintf(s.Stdout, "%-10s  %5d tasks of %4d repositories  %s\n", p.Split, p.Tasks, p.Repos, p.File)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Groups)) {
		fmt.Fprintf(s.Stdout, "together because they share functions: %s\n", strings.Join(out.Groups[name], ", "))
	}
	if len(out.Benchmarks) > 0 {
		fmt.Fprintf(s.Stdout, "in test because benchmarks use them: %s\n", strings.Join(out.Benchmarks, ", "))
	}
	for _, c := range out.Copies {
		fmt.Fprintf(s.Stdout, "in test because %d of its %d functions are in %s (%s): %s\n", c.Shared, c.Functions, c.Original, c.Benchmark, c.Repo)
	}
	if out.Unparsed > 0 {
		fmt.Fprintf(s.Stdout, "this interpreter cannot parse %d files: their functions were not compared\n", out.Unparsed)
	}
}

// write writes the parts. benchmarks lists the repositories that it put into test because of
// their names.
func (f *splitFlags) write(entries []*taskfile.Entry, groups wire.RepoGroups) (parts []splitPart, benchmarks []string, err error) {
	inTest := map[string]bool{} // groups that must be in test
	benchmarks = []string{}
	if !f.allow {
		for _, c := range groups.Copies {
			inTest[groups.Group(c.Repo)] = true
		}
		for _, e := range entries {
			if name := provenance.Upstream(e.Task); provenance.Benchmark(name) != "" && !slices.Contains(benchmarks, name) {
				benchmarks = append(benchmarks, name)
				inTest[groups.Group(name)] = true
			}
		}
	}
	for _, split := range provenance.Splits {
		part := splitPart{Split: split, File: filepath.Join(f.dir, split+".jsonl")}
		w, err := taskfile.Create(part.File)
		if err != nil {
			return nil, nil, Usage(err)
		}
		defer w.Abort()
		repos := map[string]bool{}
		for _, e := range entries {
			name := provenance.Upstream(e.Task)
			target, err := provenance.Split(groups.Group(name), f.salt, f.shares)
			if err != nil {
				return nil, nil, err
			}
			if inTest[groups.Group(name)] {
				target = "test"
			}
			if target != split {
				continue
			}
			if err := addTask(w, e, split); err != nil {
				return nil, nil, err
			}
			part.Tasks++
			repos[name] = true
		}
		part.Repos = len(repos)
		if err := w.Close(); err != nil {
			return nil, nil, err
		}
		parts = append(parts, part)
	}
	slices.Sort(benchmarks)
	return parts, benchmarks, nil
}

// addTask adds a task to a part, with its repository as it was before the bug was injected.
func addTask(w *taskfile.Writer, e *taskfile.Entry, split string) error {
	healthy, err := e.Repository()
	if err != nil {
		return Usage(err)
	}
	ref, err := w.AddTree(healthy)
	if err != nil {
		return err
	}
	t := e.Task
	origin := schemas.Value(t.Origin)
	origin.Split, origin.UpstreamRepo = split, provenance.Upstream(t)
	t.Origin = &origin
	if t.Source == "" {
		return errors.New("a task without a source")
	}
	return w.Add(t, ref)
}
