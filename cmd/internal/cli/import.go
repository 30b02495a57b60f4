package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
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
		Use: "import FORMAT FILE-or-DIRECTORY...", Short: "Turn trajectories of other tools into a dataset",
		Long: "Read trajectories of another tool and publish them as a dataset. The formats are\n" +
			strings.Join(imports.Formats(), ", ") + ".\n\n" +
			"A file is one trajectory. JSON lines (.jsonl) and Parquet files (.parquet)\n" +
			"contain one per row. Files may be compressed (.gz, .zst). Of a directory, import\n" +
			"reads the files whose names the format uses, such as trajectory.json. An invalid\n" +
			"file or row is left out, and the exit code is then 3; --json lists all of them.\n\n" +
			"A value that a file does not state is null. What a file says about success is\n" +
			"kept as a claim: tracesmith does not verify it.",
		Example: "  tracesmith import debug-gym exps -o datasets/old\n" +
			"  tracesmith import openhands data/*.parquet -o datasets/openhands",
		Args: RangeArgs(2, -1),
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

// imported counts the trajectories that an import read.
type imported struct {
	Files      int      `json:"files"`
	Episodes   int      `json:"episodes"`
	Duplicates int      `json:"same_twice"`
	Refused    int      `json:"refused"`
	Cut        int      `json:"observations_cut"` // their rows have only the first 64 KiB
	Refusals   []string `json:"refusals"`

	reasons  map[string]int // refusals by reason
	attempts map[string]int // episodes so far by group
}

// maxRefusals is the number of refused trajectories that an import shows one by one.
const maxRefusals = 20

// importFiles publishes the trajectories of files as a dataset. It reads every file before it
// publishes anything. A file that it cannot open stops the import, but an invalid trajectory is left
// out.
func importFiles(ctx context.Context, s *State, cfg configs.Config, format string, paths []string, asJSON bool) error {
	files, err := imports.Files(format, paths)
	if err != nil {
		return Usage(err)
	}
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
	total, secrets := imported{Files: len(files), Refusals: []string{}, reasons: map[string]int{}, attempts: map[string]int{}}, redact.NewKnown(redact.Environment(s.Environ))
	for _, file := range files {
		for staged, err := range imports.Episodes(format, file, normalise.Config{Producer: Version, Commit: Commit, Secrets: secrets}) {
			if err := total.add(ctx, s, staging, staged, err); err != nil {
				return err
			}
		}
	}
	total.printRefusals(s.Stderr)
	if total.Episodes == 0 {
		return Usage(fmt.Errorf("no valid trajectory to import: %d refused", total.Refused))
	}
	report, err := publishImport(ctx, cfg, format, staging, secrets)
	if err != nil {
		return err
	}
	if asJSON {
		err = PrintJSON(s, struct {
			Schema string `json:"schema"`
			imported
			Published publish.Report `json:"published"`
		}{"tracesmith.import/1", total, report})
	} else {
		fmt.Fprintf(s.Stdout, "%s read: %s imported, %d skipped because they are the same as another, %d refused\n",
			count(total.Files, "file"), count(total.Episodes, "episode"), total.Duplicates, total.Refused)
		if total.Cut > 0 {
			fmt.Fprintf(s.Stdout, "%s of more than 64 KiB: rows have the beginning of each, table blobs has the whole text\n", count(total.Cut, "observation"))
		}
		printPublished(s, report, cfg.Publish.To)
		if report.Kept == 0 {
			fmt.Fprintf(s.Stdout, "Nothing is verified, so the selection keeps no episode. To train on those whose files claim success:\n  %s\n  %s\n",
				shell("tracesmith", "filter", cfg.Publish.To, "-e", "claimed_resolved", "-o", "claimed.jsonl"),
				shell("tracesmith", "export", "sft-trl", cfg.Publish.To, "--selection", "claimed.jsonl", "-o", "train.jsonl.gz"))
		}
	}
	if err == nil && total.Refused > 0 {
		return silentExit{ExitIncomplete}
	}
	return err
}

// add stages an episode, or reports the trajectory that could not be read.
func (t *imported) add(ctx context.Context, s *State, staging sinks.Store, staged sinks.Staged, err error) error {
	if refused := (*imports.RowError)(nil); errors.As(err, &refused) {
		if t.Refused++; t.Refused <= maxRefusals {
			fmt.Fprintf(s.Stderr, "refused: %s\n", refused)
		}
		t.Refusals = append(t.Refusals, refused.Error())
		t.reasons[numbers.ReplaceAllString(refused.Err.Error(), "N")]++
		if refused.Last {
			fmt.Fprintf(s.Stderr, "refused: the rest of %s\n", refused.File)
		}
		return nil
	}
	if err != nil {
		return Usage(err)
	}
	group := staged.Episode.GroupID
	staged.Episode.Attempt = int32(t.attempts[group])
	body, err := sinks.EncodeStaged(staged)
	if err != nil {
		return err
	}
	switch err = staging.Create(ctx, sinks.StagedKey("import", staged.Episode.EpisodeID), body); {
	case errors.Is(err, sinks.ErrExists):
		t.Duplicates++
		return nil
	case err == nil:
		t.Episodes++
		t.attempts[group]++
		for i := range staged.Steps {
			if staged.Steps[i].ObservationCut() {
				t.Cut++
			}
		}
	}
	return err
}

// numbers matches what differs between refusals for the same reason.
var numbers = regexp.MustCompile("[0-9]+|'[^']+'")

// printRefusals counts the refusals by reason if there are more than were shown.
func (t *imported) printRefusals(w io.Writer) {
	if t.Refused <= maxRefusals {
		return
	}
	fmt.Fprintf(w, "refused: and %d more (--json lists all); by reason, with N for a number or character:\n", t.Refused-maxRefusals)
	reasons := slices.SortedFunc(maps.Keys(t.reasons), func(a, b string) int { return cmp.Or(t.reasons[b]-t.reasons[a], strings.Compare(a, b)) })
	for _, reason := range reasons[:min(len(reasons), maxRefusals)] {
		fmt.Fprintf(w, "  %6d  %s\n", t.reasons[reason], reason)
	}
}

// publishImport publishes the staged episodes.
func publishImport(ctx context.Context, cfg configs.Config, format string, staging sinks.Store, secrets *redact.Known) (publish.Report, error) {
	chosen, err := selection.Load(cfg.Publish.Selection)
	if err != nil {
		return publish.Report{}, Usage(err)
	}
	dest, err := wire.OpenStore(ctx, cfg.Publish.To, cfg.S3)
	if err != nil {
		return publish.Report{}, Usage(err)
	}
	benchmarks, err := readComparison(cfg.Publish.BenchmarkHashes)
	if err != nil {
		return publish.Report{}, err
	}
	report, err := publish.Publish(ctx, publish.Config{
		Staging: []sinks.Store{staging}, Dest: dest, Name: datasetName(cfg.Publish), Selection: chosen, Producer: Version,
		Secrets: secrets, Benchmarks: benchmarks, Imported: format,
	})
	if err != nil {
		return report, publishError(err, cfg.Publish.To)
	}
	return report, nil
}
