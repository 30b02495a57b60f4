package observe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Gate is a condition that fails a run, such as "resolved_rate<0.2".
type Gate struct {
	metric, op string
	limit      float64
}

// gateMetrics are the numbers of a report that a gate can test.
var gateMetrics = map[string]func(Report) float64{
	"resolved_rate": func(r Report) float64 { return r.Outcome.ResolvedRate },
	"resolved":      func(r Report) float64 { return float64(r.Outcome.Resolved) },
	"missing":       func(r Report) float64 { return float64(r.Ledger.Missing) },
	"infra":         func(r Report) float64 { return float64(r.Ledger.Outcomes[schemas.OutcomeInfra]) },
	"agent_error":   func(r Report) float64 { return float64(r.Ledger.Outcomes[schemas.OutcomeAgentError]) },
	"cost_usd":      func(r Report) float64 { return r.Calls.CostUSD },
}

// GateMetrics returns the names that a gate can test.
func GateMetrics() []string { return slices.Sorted(maps.Keys(gateMetrics)) }

// ParseGate parses a gate: a metric, one of < <= > >=, and a number.
func ParseGate(text string) (Gate, error) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return Gate{}, fmt.Errorf("gate %q has no comparison: write one like resolved_rate<0.2", text)
	}
	g := Gate{metric: strings.TrimSpace(text[:at]), op: text[at : at+1]}
	rest := text[at+1:]
	if strings.HasPrefix(rest, "=") {
		g.op, rest = g.op+"=", rest[1:]
	}
	if gateMetrics[g.metric] == nil {
		return Gate{}, fmt.Errorf("gate %q: no metric %q: choose from %s", text, g.metric, strings.Join(GateMetrics(), ", "))
	}
	var err error
	if g.limit, err = strconv.ParseFloat(strings.TrimSpace(rest), 64); err != nil {
		return Gate{}, fmt.Errorf("gate %q: %q is not a number", text, strings.TrimSpace(rest))
	}
	return g, nil
}

// Fails reports whether the condition holds for a report, and says so in words.
func (g Gate) Fails(r Report) (text string, failed bool) {
	v := gateMetrics[g.metric](r)
	switch g.op {
	case "<":
		failed = v < g.limit
	case "<=":
		failed = v <= g.limit
	case ">":
		failed = v > g.limit
	default:
		failed = v >= g.limit
	}
	return fmt.Sprintf("%s is %.4g, which is %s %g", g.metric, v, g.op, g.limit), failed
}
