package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
)

type hashesFlags struct {
	taskFlags
	benchmark, out string
	noFunctions    bool
	asJSON         bool
}

func newTasksHashes(s *State) *cobra.Command {
	var f hashesFlags
	c := &cobra.Command{
		Use: "hashes [REPO...]", Short: "Write content hashes of a benchmark, to detect contamination",
		Long: `Write the hashes of all functions of healthy repositories, except tests and
functions of less than three statements. REPO is a directory of one repository
or of several; --tasks, --dir or --source use the repositories of tasks instead.
A hash covers the name and the code of a function: comments, docstrings, layout
and the path of the file make no difference.

"tasks synth --benchmark-hashes" refuses repositories that have at least half of
their functions from a repository in the file, and "tasks split
--benchmark-hashes" keeps tasks of such repositories in test.

For tasks, the file also holds ids, base commits, and hashes of the words of
problem statements and reference fixes, by which "publish --benchmark-hashes"
recognizes the tasks. It holds no text, but a reader who has half of a text can
find out whether the text was hashed.`,
		Example: "  tracesmith tasks hashes --source swebench -p tasks.with.repos=clones \\\n    --benchmark swe-bench -o swe-bench.hashes",
		Args:    RangeArgs(0, -1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	c.Flags().StringVar(&f.benchmark, "benchmark", "", "name of the benchmark (default: from the built-in lists of repositories)")
	c.Flags().StringVarP(&f.out, "out", "o", "", "file of hashes to write, JSONL")
	c.Flags().BoolVar(&f.noFunctions, "no-functions", false, "hash only tasks, and read no repository (synth and split cannot use such a file)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// hashedRepo is a row of the output.
type hashedRepo struct {
	Repo      string `json:"repo"`
	Benchmark string `json:"benchmark"`
	Trees     int    `json:"trees"`
	Functions int    `json:"functions"`
	Tasks     int    `json:"tasks"`
	Unread    int    `json:"unread_files"`
}

func (f *hashesFlags) run(ctx context.Context, s *State, args []string) error {
	switch {
	case len(args) == 0 == !f.choosesSource():
		return &Error{Code: ExitUsage, Try: "tracesmith tasks hashes DIR --benchmark NAME -o FILE", Err: errors.New("name repositories: directories, or tasks with --tasks, --dir or --source, not both")}
	case f.noFunctions && len(args) > 0:
		return Usage(errors.New("--no-functions hashes nothing of a directory: name tasks with --tasks, --dir or --source"))
	case f.out == "":
		return Usage(errors.New("name the file of hashes with -o"))
	}
	if info, err := os.Stat(f.out); err == nil && !info.Mode().IsRegular() {
		return Usage(fmt.Errorf("%s is not a regular file: name another one with -o", f.out))
	}
	cfg, bench, err := openBench(ctx, s, f.Load)
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close() }()
	list, err := bench.HashedRepos(ctx, args, cfg.Tasks)
	if err != nil {
		return Usage(err)
	}
	for _, r := range list {
		if r.Benchmark = cmp.Or(f.benchmark, r.Benchmark); r.Benchmark == "" {
			return Usage(fmt.Errorf("no built-in list has %s: name the benchmark with --benchmark", r.Repo))
		}
	}
	var hashes []provenance.RepoHashes
	var tasks []provenance.TaskHashes
	var rows []hashedRepo
	for _, r := range list {
		row := hashedRepo{Repo: r.Repo, Benchmark: r.Benchmark, Tasks: len(r.Tasks)}
		for _, t := range r.Tasks {
			tasks = append(tasks, provenance.TaskHashesOf(t, r.Benchmark))
		}
		if !f.noFunctions {
			p, unparsed, err := functionHashes(ctx, r)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Stderr, "hashes: %s (%s): %d functions of %d trees\n", p.Repo, p.Benchmark, len(p.Functions), p.Trees)
			hashes, row.Trees, row.Functions, row.Unread = append(hashes, p), p.Trees, len(p.Functions), unparsed
		}
		rows = append(rows, row)
	}
	if err := provenance.WriteHashes(f.out, hashes, tasks); err != nil {
		return Usage(err)
	}
	if f.asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.tasks.hashes/1", "file": f.out, "repos": rows})
	}
	for _, r := range rows {
		fmt.Fprintf(s.Stdout, "%-40s  %-12s %6d functions, %5d tasks", r.Repo, r.Benchmark, r.Functions, r.Tasks)
		if r.Unread > 0 {
			fmt.Fprintf(s.Stdout, ", %d files that this interpreter cannot parse", r.Unread)
		}
		fmt.Fprintln(s.Stdout)
	}
	next := "tasks synth"
	if f.noFunctions {
		next = "publish"
	}
	fmt.Fprintf(s.Stdout, "next: tracesmith %s ... --benchmark-hashes %s\n", next, filepath.ToSlash(f.out))
	return nil
}

// functionHashes returns the hashes of a repository's functions. It returns an error if they
// are too few to recognize the repository.
func functionHashes(ctx context.Context, r *wire.HashedRepo) (provenance.RepoHashes, int, error) {
	p, unparsed, err := r.Hashes(ctx)
	if err == nil && len(p.Functions) < provenance.CopyMinFunctions {
		err = Usage(fmt.Errorf("%s has %d functions of three statements or more, too few to recognize it by: name the directory that holds its .py files, or hash tasks with --no-functions", p.Repo, len(p.Functions)))
	}
	return p, unparsed, err
}

// readComparison reads files of hashes for a comparison with benchmarks. It returns nil if
// there are no files.
func readComparison(files []string) (*provenance.Comparison, error) {
	library, err := readLibrary(files)
	if library == nil || err != nil {
		return nil, err
	}
	return library.Comparison(), nil
}

// readLibrary reads files of hashes. It returns nil if there are no files.
func readLibrary(files []string) (*provenance.Library, error) {
	if len(files) == 0 {
		return nil, nil
	}
	l := &provenance.Library{}
	for _, name := range files {
		if err := l.ReadHashes(name); err != nil {
			return nil, Usage(err)
		}
	}
	return l, nil
}
