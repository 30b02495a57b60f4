package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
	"github.com/tracesmith/tracesmith/env/provenance"
)

type hashesFlags struct {
	taskFlags
	benchmark, out string
	asJSON         bool
}

func newTasksHashes(s *State) *cobra.Command {
	var f hashesFlags
	c := &cobra.Command{
		Use: "hashes [REPO...]", Short: "Write what the repositories of a benchmark are known by, whatever they are called",
		Long: `Write the hashes of all functions of healthy repositories, without tests and without
functions of less than three statements. REPO is a directory, or one of repositories;
--tasks, --dir or --source take those of tasks. A function's hash is of its name and its
code: comments, docstrings, layout and the path of the file make no difference.

With such a file "tasks synth --benchmark-hashes" refuses repositories of which at least
half of the functions stand in one of the benchmark's, and "tasks split
--benchmark-hashes" keeps tasks of such repositories in test.`,
		Example: "  tracesmith tasks hashes --source swebench -p tasks.with.repos=clones --benchmark swe-bench -o swe-bench.hashes",
		Args:    exactArgs(0, -1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	f.add(c)
	f.addSandbox(c, " (default bubblewrap)")
	c.Flags().StringVar(&f.benchmark, "benchmark", "", "name of the benchmark (default: as env/provenance lists the repository)")
	c.Flags().StringVarP(&f.out, "out", "o", "", "file of hashes, JSONL")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// hashed is a repository as it is reported.
type hashed struct {
	Repo      string `json:"repo"`
	Benchmark string `json:"benchmark"`
	Trees     int    `json:"trees"`
	Functions int    `json:"functions"`
	Unread    int    `json:"unread_files"`
}

func (f *hashesFlags) run(ctx context.Context, s *State, args []string) error {
	switch {
	case len(args) == 0 == !f.named():
		return &Error{Code: ExitUsage, Try: "tracesmith tasks hashes DIR --benchmark NAME -o FILE", Err: errors.New("name repositories: directories, or tasks with --tasks, --dir or --source, not both")}
	case f.out == "":
		return Usage(errors.New("name the file of hashes with -o"))
	}
	if info, err := os.Stat(f.out); err == nil && !info.Mode().IsRegular() {
		return Usage(fmt.Errorf("%s is no regular file: name another one with -o", f.out))
	}
	cfg, err := f.load(s)
	if err != nil {
		return err
	}
	bench, err := wire.NewWorkbench(ctx, cfg, s.host())
	if err != nil {
		return Usage(err)
	}
	defer func() { _ = bench.Close() }()
	list, err := bench.Hashed(ctx, args, cfg.Tasks)
	if err != nil {
		return Usage(err)
	}
	for i, p := range list {
		if list[i].Benchmark = cmp.Or(f.benchmark, p.Benchmark); list[i].Benchmark == "" {
			return Usage(fmt.Errorf("no list has %s: name the benchmark with --benchmark", p.Repo))
		}
	}
	var prints []provenance.Prints
	var rows []hashed
	for _, r := range list {
		p, unread, err := r.Prints(ctx)
		if err != nil {
			return err
		}
		if len(p.Functions) < provenance.CopyLeast {
			return Usage(fmt.Errorf("%s has %d functions of three statements or more, by which nothing can be known again: name the directory that holds its .py files", p.Repo, len(p.Functions)))
		}
		fmt.Fprintf(s.Stderr, "hashes: %s (%s): %d functions of %d trees\n", p.Repo, p.Benchmark, len(p.Functions), p.Trees)
		prints, rows = append(prints, p), append(rows, hashed{p.Repo, p.Benchmark, p.Trees, len(p.Functions), unread})
	}
	if err := provenance.WritePrints(f.out, prints); err != nil {
		return Usage(err)
	}
	if f.asJSON {
		return printJSON(s, map[string]any{"schema": "tracesmith.tasks.hashes/1", "file": f.out, "repos": rows})
	}
	for _, r := range rows {
		fmt.Fprintf(s.Stdout, "%-40s  %-12s %6d functions", r.Repo, r.Benchmark, r.Functions)
		if r.Unread > 0 {
			fmt.Fprintf(s.Stdout, ", %d files are no Python of this interpreter", r.Unread)
		}
		fmt.Fprintln(s.Stdout)
	}
	fmt.Fprintf(s.Stdout, "next: tracesmith tasks synth ... --benchmark-hashes %s\n", filepath.ToSlash(f.out))
	return nil
}

// libraryOf reads files of hashes; nil for none.
func libraryOf(files []string) (*provenance.Library, error) {
	if len(files) == 0 {
		return nil, nil
	}
	l := &provenance.Library{}
	for _, name := range files {
		if err := l.ReadPrints(name); err != nil {
			return nil, Usage(err)
		}
	}
	return l, nil
}
