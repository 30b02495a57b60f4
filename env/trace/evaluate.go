package trace

import (
	"context"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxReplies limits the replies of one run. There is one for each query and hit.
const maxReplies = 2_000

// Evaluate runs one test on a tree with a patch, and evaluates the expressions of each query at the requested hits:
// executions of its line, or calls or returns at it. The probe forks a child process for each evaluation, so that it
// does not change the run, and ends the child after a time limit. Replies are in the order of the run. They are missing
// for hits that do not happen in this run or that exceed the limits.
func Evaluate(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, test string, queries []schemas.TraceQuery) ([]schemas.TraceReply, error) {
	probe := newProbe(evaluateSource, map[string]any{"mode": "evaluate", "queries": queries, "most": maxReplies})
	run, err := runProbe(ctx, r, t, tree, patch, verify.Variant{Only: []string{test}, Probe: probe, Timeout: experimentTimeout})
	if err != nil {
		return nil, err
	}
	var out []schemas.TraceReply
	readRecords(run.Probe, func(r record) {
		var reply schemas.TraceReply
		var values []text
		if r.kind != "reply" || !r.decode(&reply.Query, &reply.Hit, &values, &reply.Depth) || reply.Query < 0 || reply.Query >= len(queries) ||
			len(values) != len(queries[reply.Query].Expressions) || len(out) == maxReplies {
			return
		}
		for _, v := range values {
			reply.Values = append(reply.Values, schemas.TraceText(v))
		}
		out = append(out, reply)
	})
	return out, nil
}

// text is a TraceText as the probe writes it.
type text schemas.TraceText

// UnmarshalJSON reads [text, fingerprint, error].
func (t *text) UnmarshalJSON(raw []byte) error { return decodeTuple(raw, &t.Text, &t.Print, &t.Error) }
