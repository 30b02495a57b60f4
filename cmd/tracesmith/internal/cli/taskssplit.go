package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/env/provenance"
	"github.com/tracesmith/tracesmith/env/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

type splitFlags struct {
	by     string
	shares [3]float64
	salt   string
	allow  bool
	dir    string
	asJSON bool
}

func newTasksSplit(s *State) *cobra.Command {
	var f splitFlags
	c := &cobra.Command{
		Use: "split FILE", Short: "Split a task file by repository, so that no repository is in two parts",
		Long: `Split a task file into train.jsonl, validation.jsonl and test.jsonl. A repository
goes into a part by the hash of its canonical upstream name: all its tasks, mirrors and
forks under other names go with it, and new repositories move no old one. Repositories
that public benchmarks take their tasks from may only be in test; see --allow-benchmarks.`,
		Example: "  tracesmith tasks split bugs/tasks.jsonl --train 0.9 --val 0.05 --test 0.05",
		Args:    exactArgs(1, 1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.by, "by", "repo", "what stays together: repo")
	fl.Float64Var(&f.shares[0], "train", 0.9, "share of repositories in train")
	fl.Float64Var(&f.shares[1], "val", 0.05, "share of repositories in validation")
	fl.Float64Var(&f.shares[2], "test", 0.05, "share of repositories in test")
	fl.StringVar(&f.salt, "salt", provenance.Salt, "changes which repository goes where")
	fl.BoolVar(&f.allow, "allow-benchmarks", false, "treat repositories of public benchmarks as any other")
	fl.StringVarP(&f.dir, "out", "o", "", "output directory (default: that of the file)")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// splitPart is one part as it is reported.
type splitPart struct {
	Split string `json:"split"`
	File  string `json:"file"`
	Tasks int    `json:"tasks"`
	Repos int    `json:"repos"`
}

func (f *splitFlags) run(ctx context.Context, s *State, name string) error {
	if f.by != "repo" {
		return Usage(fmt.Errorf("--by %s: tasks can be split by repo only", f.by))
	}
	if _, err := provenance.Split("", f.salt, f.shares); err != nil {
		return Usage(fmt.Errorf("--train, --val and --test: %w", err))
	}
	entries, err := taskfile.Read(ctx, name, "")
	if err != nil {
		return Usage(err)
	}
	if f.dir == "" {
		f.dir = filepath.Dir(name)
	}
	parts, held, err := f.write(entries)
	if err != nil {
		return err
	}
	if f.asJSON {
		return printJSON(s, map[string]any{"schema": "tracesmith.split/1", "parts": parts, "lists_version": provenance.ListVersion, "benchmark_repos": held})
	}
	for _, p := range parts {
		fmt.Fprintf(s.Stdout, "%-10s  %5d tasks of %4d repositories  %s\n", p.Split, p.Tasks, p.Repos, p.File)
	}
	if len(held) > 0 {
		fmt.Fprintf(s.Stdout, "in test because benchmarks use them: %s\n", strings.Join(held, ", "))
	}
	return nil
}

// write makes the parts; held are the benchmark repositories that were kept out
// of the others.
func (f *splitFlags) write(entries []*taskfile.Entry) (parts []splitPart, held []string, err error) {
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
			in, err := provenance.Split(name, f.salt, f.shares)
			if err != nil {
				return nil, nil, err
			}
			if provenance.Benchmark(name) != "" && !f.allow {
				in = "test"
				if !slices.Contains(held, name) {
					held = append(held, name)
				}
			}
			if in != split {
				continue
			}
			if err := put(w, e, split); err != nil {
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
	slices.Sort(held)
	return parts, held, nil
}

// put writes a task of one file into a part. Its repository is stored beside it,
// without the bug, as it was.
func put(w *taskfile.Writer, e *taskfile.Entry, split string) error {
	healthy, err := e.Repository()
	if err != nil {
		return Usage(err)
	}
	ref, err := w.AddTree(healthy)
	if err != nil {
		return err
	}
	t := e.Task
	origin := schemas.Origin{}
	if t.Origin != nil {
		origin = *t.Origin
	}
	origin.Split, origin.UpstreamRepo = split, provenance.Upstream(t)
	t.Origin = &origin
	if t.Source == "" {
		return errors.New("a task without a source")
	}
	return w.Add(t, ref)
}
