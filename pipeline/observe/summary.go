package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// shown is how many ids of a class the text names; summary.json has them all.
const shown = 10

// JSON is the content of summary.json.
func (r Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding summary: %w", err)
	}
	return append(b, '\n'), nil
}

// block is one part of the summary: a title and its lines.
type block struct {
	title string
	lines []string
}

// WriteText writes the summary for a terminal.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s in %s, run directory %s\n", r.Verdict, r.Ended.Sub(r.Started).Round(10*time.Millisecond), r.RunDir)
	for _, block := range r.blocks() {
		for i, line := range block.lines {
			title := ""
			if i == 0 {
				title = block.title
			}
			fmt.Fprintf(&b, "  %-9s %s\n", title, line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown is the content of summary.md.
func (r Report) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nRun `%s`, %s, directory `%s`.\n", r.Verdict, r.RunID, r.Ended.Sub(r.Started).Round(10*time.Millisecond), r.RunDir)
	for _, block := range r.blocks() {
		fmt.Fprintf(&b, "\n## %s\n\n", block.title)
		for _, line := range block.lines {
			fmt.Fprintf(&b, "- %s\n", strings.TrimSpace(line))
		}
	}
	return []byte(b.String())
}

func (r Report) blocks() []block {
	var out []block
	if r.Error != "" {
		lines := []string{r.Error}
		if r.Hint != "" {
			lines = append(lines, r.Hint)
		}
		out = append(out, block{"stopped", lines})
	}
	out = append(out, block{"ledger", r.ledgerLines()}, block{"outcome", r.outcomeLines()}, block{"effort", r.effortLines()})
	if lines := r.frictionLines(); len(lines) > 0 {
		out = append(out, block{"friction", lines})
	}
	data := fmt.Sprintf("%d episodes, %d step rows, %s staged in %s", r.Data.Episodes, r.Data.Rows, size(r.Data.Bytes), r.Data.Staging)
	if len(r.Data.Redactions) > 0 {
		data += "; redacted: " + counts(r.Data.Redactions)
	}
	return append(out, block{"data", []string{data}}, block{"next", r.Next})
}

// ledgerLines prints the ledger as two equations, and who is behind the bad
// numbers.
func (r Report) ledgerLines() []string {
	l := r.Ledger
	lines := []string{fmt.Sprintf("%d selected = %d reused + %d ran + %d missing", l.Selected, l.Reused, l.Ran, l.Missing)}
	var terms []string
	for _, o := range schemas.Outcomes {
		terms = append(terms, fmt.Sprintf("%d %s", l.Outcomes[o], o))
	}
	lines = append(lines, fmt.Sprintf("%d ran = %s", l.Ran, strings.Join(terms, " + ")))
	for _, o := range []string{schemas.OutcomeAgentError, schemas.OutcomeInfra, schemas.OutcomeCancelled} {
		lines = append(lines, r.named(o)...)
	}
	for i, m := range r.Missing {
		if i == shown {
			lines = append(lines, fmt.Sprintf("missing: and %d more, see summary.json", len(r.Missing)-shown))
			break
		}
		lines = append(lines, fmt.Sprintf("missing: %s %s#%d: %s", m.ID, m.Instance, m.Attempt, m.Reason))
	}
	return lines
}

func (r Report) named(outcome string) []string {
	var lines []string
	for _, e := range r.Episodes {
		if e.Reused || e.Outcome != outcome {
			continue
		}
		if len(lines) == shown {
			return append(lines, outcome+": and more, see summary.json")
		}
		line := fmt.Sprintf("%s: %s %s#%d: %s", outcome, e.ID, e.Instance, e.Attempt, e.ExitReason)
		if e.Cause != "" {
			line += ": " + firstLine(e.Cause)
		}
		lines = append(lines, line)
	}
	return lines
}

func (r Report) outcomeLines() []string {
	o := r.Outcome
	lines := []string{fmt.Sprintf("resolved %d of %d verified episodes (%.1f%%)", o.Resolved, o.Verified, 100*o.ResolvedRate)}
	if o.Tasks != o.Episodes {
		lines = append(lines, fmt.Sprintf("resolved by at least one attempt: %d of %d tasks", o.ResolvedTasks, o.Tasks))
	}
	if n := o.Episodes - o.Verified; n > 0 {
		lines = append(lines, fmt.Sprintf("%d episodes without a verdict", n))
	}
	return lines
}

func (r Report) effortLines() []string {
	e := r.Effort
	lines := []string{
		fmt.Sprintf("steps %.0f (p50 %.0f, p90 %.0f, p99 %.0f, max %.0f)", e.Steps.Sum, e.Steps.P50, e.Steps.P90, e.Steps.P99, e.Steps.Max),
		fmt.Sprintf("seconds per episode p50 %.2f, p90 %.2f, p99 %.2f, max %.2f", e.WallSeconds.P50, e.WallSeconds.P90, e.WallSeconds.P99, e.WallSeconds.Max),
	}
	if e.Tokens > 0 {
		lines = append(lines, fmt.Sprintf("tokens %d (%.0f%% of the prompt from cache, %d for reasoning)",
			e.Tokens, 100*float64(e.CachedTokens)/float64(max(1, e.PromptTokens)), e.ReasoningTokens))
	}
	switch {
	case e.CostUSD == nil:
		lines = append(lines, "cost unknown: no price for some of the calls")
	case *e.CostUSD > 0:
		lines = append(lines, fmt.Sprintf("cost $%.4f, $%.4f per task, $%.4f per resolved task; $%.4f in this run",
			*e.CostUSD, *e.CostUSD/float64(max(1, r.Outcome.Tasks)), *e.CostUSD/float64(max(1, r.Outcome.ResolvedTasks)), e.SpentNowUSD))
	default:
		lines = append(lines, "cost $0")
	}
	return lines
}

func (r Report) frictionLines() []string {
	f := r.Friction
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{f.InfraRetries, "infrastructure retries"}, {f.LLMRetries, "model call retries"}, {f.FormatErrors, "format errors"},
		{f.LostInFlight, "model replies lost in flight"}, {f.Diverged, "replayed calls that diverged"}, {f.Adopted, "staged by another worker first"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	var lines []string
	if len(parts) > 0 {
		lines = append(lines, strings.Join(parts, ", "))
	}
	if len(f.ToolErrors) > 0 {
		lines = append(lines, "tool errors: "+counts(f.ToolErrors))
	}
	return lines
}

func counts(m map[string]int) string {
	var parts []string
	for _, k := range sorted(m) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
