package lab

import (
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
)

// benchReport is what bench env prints.
type benchReport struct {
	Schema   string    `json:"schema"`
	Machine  machine   `json:"machine"`
	Rounds   int       `json:"rounds"`
	Measures []measure `json:"measures"`
}

// sample is one measured call: its wall time, and the part in which a program ran in the
// sandbox.
type sample struct{ wall, program time.Duration }

// measure is one measured quantity.
type measure struct {
	Sandbox string  `json:"sandbox"`
	What    string  `json:"what"`
	N       int     `json:"n"`
	Median  float64 `json:"median_ms"`
	P99     float64 `json:"p99_ms"`
	// The overhead is wall time minus the run time of the program, as the guest
	// measures it.
	OverheadMedian *float64 `json:"overhead_median_ms"`
	OverheadP99    *float64 `json:"overhead_p99_ms"`
	Bare           *float64 `json:"bare_ms"` // median of the same without tracesmith
	Target         string   `json:"target,omitempty"`
	Met            *bool    `json:"met,omitempty"`
}

// overheadP99 is the target for the 99th percentile of the overhead, in milliseconds.
const overheadP99 = 20

// add records a measure. For a call, target bounds the median overhead, and overheadP99 its
// 99th percentile. For anything else, target bounds the median. 0 means no target.
func (b *envBench) add(name string, samples []sample, target float64, call bool, bare *float64) {
	wall, over := []float64{}, []float64{}
	for _, s := range samples {
		wall = append(wall, milliseconds(s.wall))
		over = append(over, milliseconds(s.wall-s.program))
	}
	m := measure{Sandbox: b.kind, What: name, N: len(samples), Median: quantile(wall, 0.5), P99: quantile(wall, 0.99), Bare: bare}
	met := m.Median <= target
	m.Target = fmt.Sprintf("≤ %.0f", target)
	if call {
		om, op := quantile(over, 0.5), quantile(over, 0.99)
		m.OverheadMedian, m.OverheadP99 = &om, &op
		met = om <= target && op <= overheadP99
		m.Target = fmt.Sprintf("≤ %g, p99 ≤ %d", target, overheadP99)
	}
	if m.Met = &met; target == 0 {
		m.Target, m.Met = "", nil
	}
	b.rows = append(b.rows, m)
}

// quantile returns the nearest-rank quantile of unsorted values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(rank, len(sorted)-1))]
}

func (r benchReport) print(s *cli.State) error {
	fmt.Fprintf(s.Stdout, "%s\nmilliseconds; over: overhead, wall minus the program's own time; bare: without\ntracesmith. Calls take turns, the first turn does not count.\n", r.Machine)
	for i, m := range r.Measures {
		if i == 0 || m.Sandbox != r.Measures[i-1].Sandbox {
			if err := r.printSandbox(s, m.Sandbox); err != nil {
				return fmt.Errorf("writing output: %w", err)
			}
		}
	}
	return nil
}

// printSandbox prints the table of one sandbox kind and the targets that it misses.
func (r benchReport) printSandbox(s *cli.State, kind string) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 1, ' ', 0)
	targets, missed := 0, []string{}
	fmt.Fprintf(w, "\n%s\t%4s\t%7s\t%7s\t%7s\t%7s\t%6s\n", kind, "n", "median", "p99", "over", "p99", "bare")
	for _, m := range r.Measures {
		if m.Sandbox != kind {
			continue
		}
		fmt.Fprintf(w, "%s\t%4d\t%7s\t%7s\t%7s\t%7s\t%6s\n", m.What, m.N, optional(&m.Median), optional(&m.P99), optional(m.OverheadMedian), optional(m.OverheadP99), optional(m.Bare))
		if m.Met == nil {
			continue
		}
		if targets++; !*m.Met {
			missed = append(missed, fmt.Sprintf("  missed: %s (%s)", m.What, m.Target))
		}
	}
	fmt.Fprintf(w, "%d of %d targets met\n", targets-len(missed), targets)
	for _, line := range missed {
		fmt.Fprintln(w, line)
	}
	return w.Flush()
}

// optional formats milliseconds to fit their column; "" for nil.
func optional(v *float64) string {
	switch {
	case v == nil:
		return ""
	case math.Abs(*v) >= 1000:
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.2f", *v)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
