package lab

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/env"
)

func newBench(s *cli.State) *cobra.Command {
	return cli.Group("bench", "Measure tracesmith on this machine", newBenchEnv(s), newBenchEpisodes(s), newBenchParquet(s))
}

func newBenchEnv(s *cli.State) *cobra.Command {
	var f cli.ConfigFlags
	var asJSON bool
	var kinds []string
	var rounds int
	c := &cobra.Command{
		Use: "env", Short: "Measure the latency of starts, tool calls and episodes", Args: cli.RangeArgs(0, 0),
		Long: `Measure starts, resets, tool calls and whole episodes on the first built-in
task and, where possible, what the same costs without tracesmith (bare). The
overhead of a call is its time minus the run time of the program in the sandbox.
Built-in targets limit the median and the 99th percentile of this overhead, and
the median of other measurements. A missed target is reported, but is no failure:
machines differ, and a busy machine misses more targets. The first run of each
measurement does not count.`,
		Example: "  tracesmith-lab bench env\n  tracesmith-lab bench env --sandbox bubblewrap,docker --json",
		RunE: func(c *cobra.Command, _ []string) error {
			if len(kinds) > 0 {
				f.Sandbox = kinds[0]
			}
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			if rounds < 2 {
				return cli.Usage(fmt.Errorf("--rounds must be at least 2, got %d", rounds))
			}
			report := benchReport{Schema: "tracesmith.bench.env/2", Machine: thisMachine(), Rounds: rounds}
			report.Machine.Load[0] = load()
			if len(kinds) == 0 {
				kinds = []string{cmp.Or(cfg.Sandbox.Kind, "bubblewrap")}
			}
			for _, kind := range kinds {
				if s.TTY {
					fmt.Fprintf(s.Stderr, "measuring %s: starts, calls, whole episodes\n", kind)
				}
				rows, err := benchEnv(c.Context(), s, cfg, kind, rounds)
				if err != nil {
					return err
				}
				report.Measures = append(report.Measures, rows...)
			}
			report.Machine.Load[1] = load()
			if asJSON {
				return cli.PrintJSON(s, report)
			}
			return report.print(s)
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringSliceVar(&kinds, "sandbox", nil, "sandbox kinds to measure: "+strings.Join(env.Drivers.Kinds(), ", ")+
		" (default: sandbox.kind of the configuration, or bubblewrap)")
	c.Flags().IntVar(&rounds, "rounds", 50,
		"number of measurements of each tool call; slower operations are measured fewer times")
	return c
}
