package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/publish"
)

func newVerify(s *State) *cobra.Command {
	var f dataFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "verify DATASET-or-RUN", Short: "Check every object of a dataset or a run against its manifests", Args: RangeArgs(1, 1),
		Long: `Read every object of every version of a dataset and the copy of the latest
version at its root, or every staged episode of a run, on disk or in S3, and
name each object that is damaged, missing or surplus. An object that its server
refuses to return counts as damaged. verify changes nothing.

Exit code 6: some objects failed verification. Exit code 2: the location holds
neither a dataset nor a run.`,
		Example: "  tracesmith verify datasets/a\n  tracesmith verify s3://bucket/traces --json",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.config(s)
			if err != nil {
				return err
			}
			report, err := wire.Audit(c.Context(), args[0], cfg.S3)
			if err != nil {
				return readError(args[0], err)
			}
			if asJSON {
				err = PrintJSON(s, struct {
					Schema string `json:"schema"`
					publish.AuditReport
				}{"tracesmith.verify/1", report})
			} else {
				err = printAudit(s, report)
			}
			if err == nil && len(report.Findings) > 0 {
				err = &Error{Code: ExitCheckFailed, Err: fmt.Errorf("%s of %s failed verification", count(len(report.Findings), "object"), args[0])}
			}
			return err
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// readError adds the exit code to the error of a location that cannot be read.
func readError(place string, err error) error {
	if isRemote(place) && !errors.Is(err, publish.ErrNoDataset) && CodeOf(err) == ExitFailure {
		return &Error{Code: ExitStorage, Try: "the same command again", Err: err}
	}
	return Usage(err)
}

func printAudit(s *State, r publish.AuditReport) error {
	if len(r.Findings) > 0 {
		w := newTable(s.Stdout, "PROBLEM\tOBJECT\tDETAIL")
		for _, f := range r.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Problem, f.Object, firstLine(f.Detail))
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("printing the problems: %w", err)
		}
	}
	versions := ""
	if r.Kind == "dataset" {
		versions = " of " + count(len(r.Versions), "version")
	}
	_, err := fmt.Fprintf(s.Stdout, "%s %s: %s%s read, %d bytes, %s\n",
		r.Kind, r.URI, count(r.Objects, "object"), versions, r.Bytes, count(len(r.Findings), "problem"))
	return err
}
