package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/sinks"
)

func newPublish(s *State) *cobra.Command {
	var f ConfigFlags
	var to, name, recipe, endpoint string
	var hashes []string
	var asJSON bool
	c := &cobra.Command{
		Use: "publish RUN_DIR...", Short: "Turn staged episodes into a dataset version",
		Long: `Read the staged episodes of runs, sort them, write verified Parquet shards and,
last, the manifest. Publishing the same input again writes nothing.

reports/contamination.json and the dataset card name the tasks and episodes that
belong to public benchmarks. publish recognizes them by built-in lists of
repositories and, with --benchmark-hashes, by base commits and texts. It leaves
none of them out; filter can, by column contamination.`,
		Example: "  tracesmith publish runs/a --to datasets/a\n" +
			"  tracesmith publish runs/a runs/b --to s3://bucket/traces \\\n    --s3-endpoint http://127.0.0.1:7070",
		Args: RangeArgs(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			cfg.Publish.To = to
			if to == "" {
				return Usage(errors.New("say where to publish with --to: a directory or s3://bucket/prefix"))
			}
			cfg.Publish.Name = cmp.Or(name, cfg.Publish.Name)
			cfg.Publish.Selection = cmp.Or(recipe, cfg.Publish.Selection)
			if len(hashes) > 0 {
				cfg.Publish.BenchmarkHashes = hashes
			}
			if endpoint != "" {
				cfg.S3.Endpoint, cfg.S3.PathStyle = endpoint, true
			}
			report, err := publishRuns(c.Context(), s, cfg, args)
			if err != nil {
				return Resumable(c.Context(), err)
			}
			if asJSON {
				return PrintJSON(s, struct {
					Schema string `json:"schema"`
					publish.Report
				}{"tracesmith.publish/1", report})
			}
			printPublished(s, report, cfg.Publish.To)
			return nil
		},
	}
	f.Add(c)
	c.Flags().StringVar(&to, "to", "", "destination: a directory or s3://bucket/prefix")
	c.Flags().StringVar(&name, "name", "", "name of the dataset (default: the last part of the destination, without \"dataset\")")
	c.Flags().StringVar(&recipe, "selection", "", "selection to write with the data: a built-in recipe, a recipe file, or a file that filter wrote")
	c.Flags().StringSliceVar(&hashes, "benchmark-hashes", nil, "files that \"tasks hashes\" wrote: reports/contamination.json names tasks and episodes of these benchmarks")
	c.Flags().StringVar(&endpoint, "s3-endpoint", "", "address of an S3-compatible server (path style)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// publishRuns publishes the staged episodes of run directories.
func publishRuns(ctx context.Context, s *State, cfg configs.Config, runs []string) (publish.Report, error) {
	zero := publish.Report{}
	var staging []sinks.Store
	for _, dir := range runs {
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
			return zero, Usage(fmt.Errorf("%s is not a run directory (no run.json): name the directory given to run --run-dir", dir))
		}
		store, err := wire.OpenStaging(ctx, dir, cfg.S3)
		if err != nil {
			return zero, Usage(err)
		}
		staging = append(staging, store)
		runDir, err := wire.OpenStore(ctx, dir, cfg.S3)
		if err != nil {
			return zero, Usage(err)
		}
		if runDir.URI() != store.URI() { // dead letters and annotations are always in the run directory
			staging = append(staging, runDir)
		}
	}
	chosen, err := selection.Load(cfg.Publish.Selection)
	if err != nil {
		return zero, Usage(err)
	}
	benchmarks, err := readComparison(cfg.Publish.BenchmarkHashes)
	if err != nil {
		return zero, err
	}
	dest, err := wire.OpenStore(ctx, cfg.Publish.To, cfg.S3)
	if err != nil {
		return zero, Usage(err)
	}
	live := newLiveLine(s)
	report, err := publish.Publish(ctx, publish.Config{
		Staging: staging, Dest: dest, Name: datasetName(cfg.Publish), Selection: chosen, Producer: Version,
		Secrets: redact.NewKnown(redact.Environment(s.Environ)), Benchmarks: benchmarks,
		Progress: func(stage string) {
			live.show("publishing: %s", stage)
		},
	})
	live.erase()
	return report, publishError(err, cfg.Publish.To)
}

// checkDestination returns an error if the destination or the benchmark hashes cannot
// be used, so that a run fails before it starts. It writes nothing.
func checkDestination(ctx context.Context, cfg configs.Config) error {
	if _, err := readLibrary(cfg.Publish.BenchmarkHashes); err != nil {
		return fmt.Errorf("publish.benchmark_hashes: %w", err)
	}
	dest, err := wire.OpenStore(ctx, cfg.Publish.To, cfg.S3)
	if err != nil {
		return Usage(fmt.Errorf("publish.to: %w", err))
	}
	switch _, err = publish.ContainsDataset(ctx, dest, datasetName(cfg.Publish)); {
	case errors.Is(err, publish.ErrName):
		err = fmt.Errorf("publish.name: %w", err)
	case err != nil:
		err = fmt.Errorf("publish.to: %w", err)
	}
	return publishError(err, cfg.Publish.To)
}

// datasetName returns the configured name, or else the last part of the destination that says something.
func datasetName(p configs.Publish) string {
	place := strings.TrimSuffix(filepath.Clean(p.To), "/dataset")
	return cmp.Or(p.Name, filepath.Base(place))
}

// publishError adds the exit code to the error of a failed publication. What the user chose,
// such as the location or the runs, is a usage error; the failure of a remote store is not.
func publishError(err error, to string) error {
	_, local := errors.AsType[*fs.PathError](err)
	_, selectionErr := errors.AsType[*selection.Error](err)
	switch {
	case err == nil, CodeOf(err) != ExitFailure && !errors.Is(err, sinks.ErrUnsafe):
		return err
	case selectionErr, errors.Is(err, publish.ErrEmpty), errors.Is(err, publish.ErrName), errors.Is(err, publish.ErrWithheld), errors.Is(err, publish.ErrSchemas), errors.Is(err, publish.ErrOccupied), errors.Is(err, publish.ErrDamaged), errors.Is(err, publish.ErrConflict):
		return Usage(err)
	case errors.Is(err, publish.ErrLeaseLost):
		return &Error{Code: ExitLocked, Try: "the same command again", Err: err}
	case errors.Is(err, sinks.ErrUnsafe):
		return &Error{Code: ExitStorage, Try: "another place to publish to; the run directory is complete", Err: err}
	case isRemote(to):
		return &Error{Code: ExitStorage, Try: "the same command again; the run directory is complete", Err: err}
	case local:
		return &Error{Code: ExitUsage, Try: "another place to publish to that can be written", Err: err}
	}
	return err
}

func printPublished(s *State, r publish.Report, place string) {
	if r.AlreadyPublished {
		fmt.Fprintf(s.Stdout, "\nDataset %s, version %s: already published, nothing written\n", r.Dataset, r.Version)
	} else {
		copied := ""
		if r.Copied > 0 {
			copied = fmt.Sprintf(", %d taken over from the previous version", r.Copied)
		}
		fmt.Fprintf(s.Stdout, "\nDataset %s, version %s: %d files, %d written%s\n", r.Dataset, r.Version, r.Files, r.Uploaded, copied)
	}
	fmt.Fprintf(s.Stdout, "  %s\n  %s, %s, %s\n  %d kept by the selection%s\n",
		r.URI, count(r.Episodes, "episode"), count(int(r.Steps), "step"), count(int(r.Bytes), "byte"), r.Kept, goldNote(r.KeptGold))
	if r.Replaced != "" {
		fmt.Fprintf(s.Stdout, "  the version before, %s, stays in .versions\n", r.Replaced)
	}
	if r.Withheld > 0 {
		fmt.Fprintf(s.Stdout, "  %s withheld because of a possible secret: exclusions/dead-letters.parquet says where\n", count(r.Withheld, "episode"))
	}
	next := []string{"tracesmith", "export", "sft-trl", place, "-o", "train.jsonl.gz"}
	if r.Kept == 0 {
		next = []string{"tracesmith", "filter", place, "--reasons"}
	}
	fmt.Fprintf(s.Stdout, "\nNext:\n  %s\n  %s\n  %s\n", shell("tracesmith", "show", place), shell("tracesmith", "stats", place), shell(next...))
	printLoading(s, place)
}

// printLoading prints how to load the dataset at place in Python. The path of the table also
// works in polars.read_parquet and in DuckDB's read_parquet.
func printLoading(s *State, place string) {
	table := strings.TrimRight(place, "/") + "/data/episodes"
	if isRemote(place) {
		fmt.Fprintf(s.Stdout, "  pandas.read_parquet(%q)   # Python; the same path with /*.parquet for polars and DuckDB\n", table)
		return
	}
	fmt.Fprintf(s.Stdout, "  load_dataset(%q)   # Python, package datasets\n  read_parquet(%q)   # pandas, polars, DuckDB\n", place, table)
}
