package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
)

func newBench(s *State) *cobra.Command {
	return group("bench", "Measure tracesmith on this machine", newBenchEnv(s))
}

func newBenchEnv(s *State) *cobra.Command {
	var f configFlags
	var asJSON bool
	var kinds []string
	var rounds int
	c := &cobra.Command{
		Use: "env", Short: "Step latency per tool and sandbox: medians, p99, overhead over the bare program", Args: exactArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.load(s)
			if err != nil {
				return err
			}
			if rounds < 2 {
				return Usage(fmt.Errorf("--rounds must be at least 2, got %d", rounds))
			}
			report := benchReport{Schema: "tracesmith.bench.env/1", Rounds: rounds}
			for _, kind := range kinds {
				cfg.Sandbox.Kind = kind
				bench, err := wire.NewWorkbench(c.Context(), cfg, s.host())
				if err != nil {
					return Usage(err)
				}
				b := envBench{bench: bench, kind: kind, rounds: rounds}
				rows, err := b.run(c.Context())
				_ = bench.Close()
				if err != nil {
					return err
				}
				report.Measures = append(report.Measures, rows...)
			}
			if asJSON {
				return printJSON(s, report)
			}
			return report.print(s)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringSliceVar(&kinds, "sandbox", []string{"bubblewrap"}, "sandbox kinds to measure: "+strings.Join(wire.DriverKinds(), ", "))
	c.Flags().IntVar(&rounds, "rounds", 50, "calls of each tool")
	return c
}

// benchReport is what bench env prints.
type benchReport struct {
	Schema   string    `json:"schema"`
	Rounds   int       `json:"rounds"`
	Measures []measure `json:"measures"`
}

// measure is one measured quantity, milliseconds.
type measure struct {
	Sandbox string  `json:"sandbox"`
	What    string  `json:"what"`
	N       int     `json:"n"`
	Median  float64 `json:"median_ms"`
	P99     float64 `json:"p99_ms"`
	// Overhead is wall time minus the time of the program that ran, as the
	// guest measured it.
	OverheadMedian *float64 `json:"overhead_median_ms"`
	OverheadP99    *float64 `json:"overhead_p99_ms"`
	Target         string   `json:"target,omitempty"`
	Met            *bool    `json:"met,omitempty"`
}

func (r benchReport) print(s *State) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "sandbox\tmeasure\tn\tmedian ms\tp99 ms\toverhead ms\toverhead p99\ttarget\tmet\t")
	for _, m := range r.Measures {
		met := ""
		if m.Met != nil {
			met = yesNo(*m.Met)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t%.2f\t%s\t%s\t%s\t%s\t\n", m.Sandbox, m.What, m.N, m.Median, m.P99, optional(m.OverheadMedian), optional(m.OverheadP99), m.Target, met)
	}
	return w.Flush()
}

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *v)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
