package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxListed is how many episodes of a kind the text lists; summary.json has them all.
const maxListed = 10

// JSON returns the content of summary.json.
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

// WriteText writes the summary. If w is a terminal, it breaks long lines between words, except
// for commands, which people copy.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	columns := columnsOf(w)
	fmt.Fprintf(&b, "\n%s in %s, run directory %s\n", r.Verdict, duration(r.Ended.Sub(r.Started)), r.RunDir)
	for _, block := range r.blocks() {
		for i, line := range block.lines {
			title := ""
			if i == 0 {
				title = block.title
			}
			if block.title != "next" {
				line = Wrap(line, max(columns-12, 0))
			}
			line = strings.ReplaceAll(line, "\n", "\n"+strings.Repeat(" ", 12))
			fmt.Fprintf(&b, "  %-9s %s\n", title, line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown returns the content of summary.md.
func (r Report) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nRun `%s`, %s, directory `%s`.\n", r.Verdict, r.RunID, duration(r.Ended.Sub(r.Started)), r.RunDir)
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
	out = append(out, block{"ledger", r.ledgerLines()})
	if r.Outcome.Episodes > 0 {
		out = append(out, block{"outcome", r.outcomeLines()}, block{"effort", r.effortLines()})
	}
	if lines := r.callLines(); len(lines) > 0 {
		out = append(out, block{"calls", lines})
	}
	if lines := r.frictionLines(); len(lines) > 0 {
		out = append(out, block{"friction", lines})
	}
	if r.Log != "" && (r.Verdict != Complete || r.Friction.InfraRetries > 0) {
		out = append(out, block{"log", []string{r.Log + " says what happened"}})
	}
	data := fmt.Sprintf("%s, %s, %s staged in %s", plural(r.Data.Episodes, "episode"), plural(r.Data.Rows, "step row"), size(r.Data.Bytes), r.Data.Staging)
	if len(r.Data.Redactions) > 0 {
		data += "; redacted: " + counts(r.Data.Redactions)
	}
	return append(out, block{"data", []string{data}}, block{"next", r.Next})
}

// ledgerLines returns the ledger as two equations, and the ids of failed and missing
// episodes.
func (r Report) ledgerLines() []string {
	l := r.Ledger
	lines := []string{fmt.Sprintf("%s selected = %s reused + %s ran + %s missing", Number(l.Selected), Number(l.Reused), Number(l.Ran), Number(l.Missing))}
	var terms []string
	for _, o := range schemas.Outcomes {
		terms = append(terms, Number(l.Outcomes[o])+" "+o)
	}
	lines = append(lines, fmt.Sprintf("%s ran = %s", Number(l.Ran), strings.Join(terms, " + ")))
	if l.Unselected > 0 {
		lines = append(lines, fmt.Sprintf("and %s of tasks or attempts that are not selected now; publishing includes them", plural(l.Unselected, "episode")))
	}
	for _, o := range []string{schemas.OutcomeAgentError, schemas.OutcomeInfra, schemas.OutcomeCancelled} {
		lines = append(lines, r.episodeLines(o)...)
	}
	return append(lines, r.missingLines()...)
}

// missingLines lists the missing episodes by the reason.
func (r Report) missingLines() (lines []string) {
	names := map[string][]string{}
	for _, m := range r.Missing {
		names[m.Reason] = append(names[m.Reason], fmt.Sprintf("%s#%d", m.Instance, m.Attempt))
	}
	for _, reason := range sorted(names) {
		list := names[reason]
		line := "missing: " + strings.Join(list[:min(maxListed, len(list))], ", ")
		if n := len(list) - maxListed; n > 0 {
			line += fmt.Sprintf(" and %d more, see summary.json", n)
		}
		lines = append(lines, line+": "+reason)
	}
	return lines
}

// episodeLines lists the episodes that this invocation ended with the given outcome.
func (r Report) episodeLines(outcome string) []string {
	var lines []string
	for _, e := range r.Episodes {
		if e.Reused || e.Outcome != outcome {
			continue
		}
		if len(lines) == maxListed {
			return append(lines, outcome+": and more, see summary.json")
		}
		line := fmt.Sprintf("%s: %s %s#%d", outcome, e.ID[:min(12, len(e.ID))], e.Instance, e.Attempt)
		if reason := e.reason(); reason != outcome {
			line += ": " + reason
		}
		if e.Cause != "" {
			line += ": " + firstLine(e.Cause)
		}
		lines = append(lines, line)
	}
	return lines
}

func (r Report) outcomeLines() []string {
	o := r.Outcome
	lines := []string{fmt.Sprintf("resolved %s of %s verified episodes (%.1f%%)", Number(o.Resolved), Number(o.Verified), 100*o.ResolvedRate)}
	if o.ResolvedGold > 0 {
		lines = append(lines, Number(o.ResolvedGold)+" more resolved with the gold patch, not counted as successes of an agent")
	}
	if o.Derived > 0 {
		lines = append(lines, Number(o.Derived)+" of these by an edit that the agent derived from what it saw")
	}
	if o.Tasks != o.Episodes {
		lines = append(lines, fmt.Sprintf("resolved by at least one attempt: %s of %s tasks", Number(o.ResolvedTasks), Number(o.Tasks)))
	}
	if n := o.Episodes - o.Verified; n > 0 {
		lines = append(lines, plural(n, "episode")+" without a verdict")
	}
	return lines
}

func (r Report) effortLines() []string {
	e := r.Effort
	lines := []string{
		plural(int(e.Steps.Sum), "step") + "; per episode " + e.Steps.quantiles(func(v float64) string { return Number(int(v)) }),
		"time per episode " + e.WallSeconds.quantiles(func(v float64) string { return duration(time.Duration(v * float64(time.Second))) }),
	}
	if e.Tokens > 0 {
		lines = append(lines, fmt.Sprintf("tokens %s (%.0f%% of the prompt from cache, %s for reasoning)",
			Number(e.Tokens), 100*float64(e.CachedTokens)/float64(max(1, e.PromptTokens)), Number(e.ReasoningTokens)))
	}
	switch {
	case e.CostUSD == nil:
		reason := "no price for some of the calls"
		if r.Calls.Unpriced == 0 && r.Calls.Uncounted > 0 {
			reason = "the server sent no token counts for " + plural(r.Calls.Uncounted, "answer")
		}
		lines = append(lines, "cost unknown: "+reason)
	case *e.CostUSD > 0:
		lines = append(lines, r.costLine(*e.CostUSD))
	default:
		lines = append(lines, "cost $0")
	}
	return lines
}

// costLine returns the cost of the episodes, and the cost per resolved task if there is
// one.
func (r Report) costLine(cost float64) string {
	line := fmt.Sprintf("cost %s, %s per task", USD(cost), USD(cost/float64(max(1, r.Outcome.Tasks))))
	if n := r.Outcome.ResolvedTasks; n > 0 {
		line += fmt.Sprintf(", %s per resolved task", USD(cost/float64(n)))
	}
	limit := ""
	if r.Calls.AtRiskUSD > 0 { // it is part of SpentNowUSD
		limit = "at most "
	}
	return line + fmt.Sprintf("; %s%s by this command", limit, USD(r.Effort.SpentNowUSD))
}

// callLines returns the model calls of the whole run, including unfinished episodes and
// earlier processes.
func (r Report) callLines() []string {
	c := r.Calls
	if c.Made+c.FromCache == 0 {
		return nil
	}
	first := fmt.Sprintf("%s made = %s answered + %s failed + %s lost in flight", Number(c.Made), Number(c.Answered), Number(c.Failed), Number(c.LostInFlight))
	if c.Retried > 0 {
		first += fmt.Sprintf("; %s of them retries", Number(c.Retried))
	}
	if c.FromCache > 0 {
		first += fmt.Sprintf("; %s requests answered from the cache", Number(c.FromCache))
	}
	paid := fmt.Sprintf("answered: %s prompt and %s completion tokens, %s", Number(c.Prompt), Number(c.Completion), USD(c.CostUSD))
	if c.Uncounted > 0 {
		paid += fmt.Sprintf("; %s answers without token counts from the server, estimated at %s and %s tokens", Number(c.Uncounted), Number(c.EstimatedPrompt), Number(c.EstimatedCompletion))
	}
	if c.Unpriced > 0 {
		paid += fmt.Sprintf("; no price for %s of them", Number(c.Unpriced))
	}
	if c.AtRiskUSD > 0 {
		paid += fmt.Sprintf("; calls without an answer may have cost up to %s more", USD(c.AtRiskUSD))
	}
	return []string{first, paid}
}

func (s Spread) quantiles(format func(float64) string) string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s", format(s.P50), format(s.P90), format(s.P99), format(s.Max))
}

func (r Report) frictionLines() []string {
	f := r.Friction
	var parts []string
	for _, p := range []struct {
		n    int
		noun string
	}{
		{f.InfraRetries, "retries after infrastructure failures"}, {f.FormatErrors, "format errors"},
		{f.Diverged, "replayed calls with a different observation (first: " + f.FirstDiverged + ")"}, {f.Adopted, "staged by another worker first"},
	} {
		if p.n > 0 {
			parts = append(parts, Number(p.n)+" "+p.noun)
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
		parts = append(parts, k+" "+Number(m[k]))
	}
	return strings.Join(parts, ", ")
}
