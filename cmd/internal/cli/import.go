package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/imports"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/sinks"
)

func newImport(s *State) *cobra.Command {
	var f ConfigFlags
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use: "import FORMAT FILE...", Short: "Turn trajectories of other tools into a dataset",
		Long: "Read trajectories of another tool and publish them as a dataset. The formats are\n" +
			strings.Join(imports.Formats(), ", ") + ".\n\n" +
			"A value that a file does not state is null. What a file says about success is\n" +
			"kept as a claim: tracesmith does not verify it.",
		Example: "  tracesmith import debug-gym exps/*/*/trajectory.json -o datasets/old",
		Args:    RangeArgs(2, -1),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(imports.Formats(), args[0]) {
				return Usage(fmt.Errorf("unknown format %q: choose one of %s", args[0], strings.Join(imports.Formats(), ", ")))
			}
			if out == "" {
				return Usage(errors.New("say where the dataset goes with -o: a directory or s3://bucket/prefix"))
			}
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			cfg.Publish.To = out
			return importFiles(c.Context(), s, cfg, args[0], args[1:], asJSON)
		},
	}
	f.Add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "dataset to write: a directory or s3://bucket/prefix")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.ValidArgsFunction = firstArg(OneOf(imports.Formats()...))
	return c
}

// importFiles publishes the trajectories of files as a dataset. It reads every file before it
// publishes anything.
func importFiles(ctx context.Context, s *State, cfg configs.Config, format string, files []string, asJSON bool) error {
	if err := checkDestination(ctx, cfg); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tracesmith-import-")
	if err != nil {
		return fmt.Errorf("making a directory for the import: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	staging, err := wire.OpenStore(ctx, dir, cfg.S3)
	if err != nil {
		return err
	}
	duplicates, secrets := 0, redact.NewKnown(redact.Environment(s.Environ))
	for _, file := range files {
		staged, err := importFile(format, file, secrets)
		if err != nil {
			return Usage(err)
		}
		body, err := sinks.EncodeStaged(staged)
		if err != nil {
			return err
		}
		err = staging.Create(ctx, sinks.StagedKey("import", staged.Episode.EpisodeID), body)
		if errors.Is(err, sinks.ErrExists) {
			duplicates++
			continue
		}
		if err != nil {
			return err
		}
	}
	chosen, err := selection.Load(cfg.Publish.Selection)
	if err != nil {
		return Usage(err)
	}
	dest, err := wire.OpenStore(ctx, cfg.Publish.To, cfg.S3)
	if err != nil {
		return Usage(err)
	}
	benchmarks, err := readComparison(cfg.Publish.BenchmarkHashes)
	if err != nil {
		return err
	}
	report, err := publish.Publish(ctx, publish.Config{
		Staging: []sinks.Store{staging}, Dest: dest, Name: datasetName(cfg.Publish), Selection: chosen, Producer: Version,
		Secrets: secrets, Benchmarks: benchmarks, Imported: format,
	})
	if err != nil {
		return publishError(err, cfg.Publish.To)
	}
	if asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.import/1", "files": len(files), "same_twice": duplicates, "published": report})
	}
	fmt.Fprintf(s.Stdout, "%s read, %d of them the same as another\n", count(len(files), "file"), duplicates)
	printPublished(s, report, cfg.Publish.To)
	return nil
}

// importFile reads the trajectory in one file.
func importFile(format, file string, secrets *redact.Known) (sinks.Staged, error) {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return sinks.Staged{}, fmt.Errorf("%s cannot be read: %w", file, err)
	case st.IsDir():
		return sinks.Staged{}, fmt.Errorf("%s is a directory: name the files in it", file)
	}
	raw, err := readBounded(file, imports.MaxBytes)
	if err != nil {
		return sinks.Staged{}, err
	}
	staged, err := imports.Read(format, filepath.Base(file), raw, st.ModTime(), normalise.Config{Producer: Version, Commit: Commit, Secrets: secrets})
	if err != nil {
		return staged, fmt.Errorf("in %s: %w", filepath.Dir(file), err)
	}
	return staged, nil
}
