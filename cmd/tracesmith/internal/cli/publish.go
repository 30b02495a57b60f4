package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/sinks"
)

func newPublish(s *State) *cobra.Command {
	var f configFlags
	var to, name, recipe, endpoint string
	var asJSON bool
	c := &cobra.Command{
		Use: "publish RUN_DIR...", Short: "Turn staged episodes into a dataset version",
		Long: "Read what runs have staged, sort it, write verified Parquet shards and, last of all, the manifest.\n" +
			"Repeating it with the same input writes nothing.",
		Example: "  tracesmith publish runs/a --to datasets/a\n  tracesmith publish runs/a runs/b --to s3://bucket/traces --s3-endpoint http://127.0.0.1:7070",
		Args:    exactArgs(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.load(s)
			if err != nil {
				return err
			}
			cfg.Publish.To = to
			if to == "" {
				return Usage(errors.New("say where to publish with --to: a directory or s3://bucket/prefix"))
			}
			if name != "" {
				cfg.Publish.Name = name
			}
			if recipe != "" {
				cfg.Publish.Selection = recipe
			}
			if endpoint != "" {
				cfg.S3.Endpoint, cfg.S3.PathStyle = endpoint, true
			}
			return publishRuns(c.Context(), s, cfg, args, asJSON)
		},
	}
	f.add(c)
	c.Flags().StringVar(&to, "to", "", "destination: a directory or s3://bucket/prefix")
	c.Flags().StringVar(&name, "name", "", "name of the dataset (default: the destination's last part)")
	c.Flags().StringVar(&recipe, "selection", "", "selection to write beside the data: a built-in name or a file")
	c.Flags().StringVar(&endpoint, "s3-endpoint", "", "address of an S3-compatible server (path style)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func publishRuns(ctx context.Context, s *State, cfg configs.Config, runs []string, asJSON bool) error {
	var staging []sinks.Store
	for _, dir := range runs {
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
			return Usage(fmt.Errorf("%s is not a run directory (no run.json); name the directory given to run --run-dir", dir))
		}
		store, err := wire.OpenStore(ctx, dir, cfg.S3)
		if err != nil {
			return Usage(err)
		}
		staging = append(staging, store)
	}
	recipe, err := selection.Load(cfg.Publish.Selection)
	if err != nil {
		return Usage(err)
	}
	dest, err := wire.OpenStore(ctx, cfg.Publish.To, cfg.S3)
	if err != nil {
		return Usage(err)
	}
	name := cfg.Publish.Name
	if name == "" {
		name = filepath.Base(cfg.Publish.To)
	}
	report, err := publish.Publish(ctx, publish.Config{
		Staging: staging, Dest: dest, Name: name, Recipe: recipe, Producer: Version,
		Progress: func(stage string) {
			if s.TTY {
				fmt.Fprintf(s.Stderr, "\r\x1b[Kpublishing: %s", stage)
			}
		},
	})
	if s.TTY {
		fmt.Fprint(s.Stderr, "\r\x1b[K")
	}
	switch {
	case errors.Is(err, publish.ErrEmpty):
		return &Error{Code: ExitUsage, Try: "tracesmith run --run-dir " + runs[0], Err: err}
	case errors.Is(err, publish.ErrOccupied):
		return &Error{Code: ExitUsage, Try: "another --to", Err: err}
	case errors.Is(err, sinks.ErrUnsafe), err != nil && codeOf(err) == ExitBug && remote(cfg.Publish.To):
		return &Error{Code: ExitStorage, Try: "the same command again; the run directory is complete", Err: err}
	case err != nil:
		return err
	}
	if asJSON {
		return printJSON(s, report)
	}
	printPublished(s, report, cfg.Publish.To)
	return nil
}

func printPublished(s *State, r publish.Report, place string) {
	if r.Already {
		fmt.Fprintf(s.Stdout, "\nDataset %s, version %s: already published, nothing written\n", r.Dataset, r.Version)
	} else {
		fmt.Fprintf(s.Stdout, "\nDataset %s, version %s: %d files, %d written\n", r.Dataset, r.Version, r.Files, r.Uploaded)
	}
	fmt.Fprintf(s.Stdout, "  %s\n  %d episodes, %d steps, %d kept by the selection, %d bytes\n", r.URI, r.Episodes, r.Steps, r.Kept, r.Bytes)
	fmt.Fprintf(s.Stdout, "\nNext:\n  tracesmith show %[1]s\n  tracesmith stats %[1]s\n  tracesmith export sft-trl %[1]s -o train.jsonl.gz\n", place)
}
