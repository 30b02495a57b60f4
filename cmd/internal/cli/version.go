package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/schemas"
)

// versionLine returns what version and --version print: the release and its build.
func versionLine() string {
	release, build, _ := strings.Cut(Version, "+")
	commit := cmp.Or(build, commit(), "unknown")
	return fmt.Sprintf("tracesmith %s (commit %s, records %s, %s, %s/%s)\n", release, commit, schemas.SchemaVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(s *State) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version of the program and of the record schema", Args: RangeArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				release, _, _ := strings.Cut(Version, "+")
				return PrintJSON(s, map[string]string{
					"schema": "tracesmith.version/1", "version": release, "build": Version, "commit": commit(),
					"record_schema": schemas.SchemaVersion, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			if _, err := fmt.Fprint(s.Stdout, versionLine()); err != nil {
				return fmt.Errorf("writing output: %w", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
