package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/schemas"
)

func newVersion(s *State) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version of the program and of the record schema", Args: exactArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(s, map[string]string{
					"schema": "tracesmith.version/1", "version": Version, "commit": commit(),
					"record_schema": schemas.SchemaVersion, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			fmt.Fprintf(s.Stdout, "tracesmith %s (records %s, %s, %s/%s)\n", Version, schemas.SchemaVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
