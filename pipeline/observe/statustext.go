package observe

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// WriteStatuses writes the status of runs as text. If w is a terminal, it breaks long lines.
func WriteStatuses(w io.Writer, list []Status, now time.Time) error {
	_, err := io.WriteString(w, statusText(list, now, columnsOf(w)))
	return err
}

// DrawStatuses draws the status of runs at the bottom of the terminal.
func (s *Screen) DrawStatuses(list []Status, now time.Time) {
	columns, _ := s.size()
	s.Draw(strings.Split(strings.TrimSuffix(statusText(list, now, columns-1), "\n"), "\n")...)
}

// statusText returns the status of runs as text that fits into the columns, if that is not 0.
func statusText(list []Status, now time.Time, columns int) string {
	var b strings.Builder
	for _, s := range list {
		s.write(&b, now, columns)
	}
	return Wrap(b.String(), columns)
}

func (s Status) write(b *strings.Builder, now time.Time, columns int) {
	state := s.Phase + ", last sign of life"
	if s.Phase == "completed" || s.Phase == "stopped" {
		state = s.Phase
	}
	fmt.Fprintf(b, "run %s: %s %s ago, pid %d on %s, in %s\n", s.RunID, state, age(seconds(s.SilentSeconds)), s.PID, s.Host, s.RunDir)
	fmt.Fprintf(b, "  %d selected = %d reused + %d ran + %d running + %d waiting + %d missing\n", s.Selected, s.Reused, s.Ran, s.Running, s.Waiting, s.Missing)
	fmt.Fprintf(b, "  %d selected = %d waiting + %d running + %d done + %d failed\n", s.Selected, s.Waiting, s.Running, s.Done, s.Failed)
	var parts []string
	for _, o := range schemas.Outcomes {
		if n := s.Outcomes[o]; n > 0 {
			parts = append(parts, Number(n)+" "+o)
		}
	}
	if s.CostUSD != nil && *s.CostUSD > 0 {
		parts = append(parts, USD(*s.CostUSD)+" for answered model calls")
	}
	if len(parts) > 0 {
		fmt.Fprintln(b, "  "+strings.Join(parts, ", "))
	}
	s.writeBudget(b)
	if s.Orphaned > 0 {
		fmt.Fprintf(b, "  %d of the running episodes belong to silent workers: other workers get them when the leases expire\n", s.Orphaned)
	}
	if columns <= 0 {
		columns = 1000
	}
	for _, line := range jobRows(s.Activity().Running, now, columns, len(s.Episodes)) {
		fmt.Fprintln(b, line)
	}
	for _, line := range s.Activity().Waits(seconds(s.CallTimeoutSeconds), now) {
		fmt.Fprintln(b, "  "+line)
	}
	s.writeWorkers(b)
}

func (s Status) writeBudget(b *strings.Builder) {
	if s.Budget == nil {
		return
	}
	limit := "no limit for the run"
	if s.Budget.LimitUSD > 0 {
		limit = fmt.Sprintf("of $%.4f", s.Budget.LimitUSD)
	}
	fmt.Fprintf(b, "  $%.4f spent + $%.4f reserved for running calls, %s\n", s.Budget.SpentUSD, s.Budget.ReservedUSD, limit)
	if s.Budget.LostUSD > 0 {
		fmt.Fprintf(b, "  $%.4f of this is the worst case of calls whose worker is gone\n", s.Budget.LostUSD)
	}
}

// writeWorkers writes the table of a cluster's workers.
func (s Status) writeWorkers(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for i, worker := range s.Workers {
		if worker.Name == LocalWorker {
			return
		}
		if i == 0 {
			fmt.Fprintln(w, "  WORKER\tHOST\tVERSION\tSTATE\tJOBS\tLOAD\tSEEN")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d/%d\t%.1f\t%s ago\n", worker.Name, worker.Host, worker.Version, worker.State,
			len(worker.Running), worker.Slots, worker.Load, age(seconds(worker.SilentSeconds)))
	}
	_ = w.Flush() // writes to memory
	for _, worker := range s.Workers {
		if worker.Reason != "" {
			fmt.Fprintf(b, "  %s %s: %s\n", worker.Name, worker.State, strings.TrimSpace(worker.Reason))
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
