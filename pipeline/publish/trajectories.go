package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
)

// Trajectories streams whole episodes in the sort order of the table episodes. It reads
// each table once. The sequence ends after the first error.
func (d *Dataset) Trajectories(ctx context.Context) iter.Seq2[sinks.Trajectory, error] {
	return func(yield func(sinks.Trajectory, error) bool) {
		var none sinks.Trajectory
		tools, err := d.ToolSets(ctx)
		if err != nil {
			yield(none, err)
			return
		}
		annotations, err := d.annotations(ctx)
		if err != nil {
			yield(none, err)
			return
		}
		next, stop := iter.Pull2(d.Steps(ctx))
		defer stop()
		step, err, more := next()
		for e, eerr := range d.Episodes(ctx) {
			if eerr != nil {
				yield(none, eerr)
				return
			}
			t := sinks.Trajectory{Episode: e, Annotations: annotations[e.EpisodeID]}
			for more && err == nil && step.EpisodeID == e.EpisodeID {
				t.Steps = append(t.Steps, step)
				step, err, more = next()
			}
			if err != nil {
				yield(none, err)
				return
			}
			if len(t.Steps) != int(e.NSteps) {
				yield(none, d.corrupt("data/steps", fmt.Errorf("episode %s has %d steps there, but %d in its row", e.EpisodeID, len(t.Steps), e.NSteps)))
				return
			}
			if e.ToolSetSHA256 != nil {
				t.Tools = tools[*e.ToolSetSHA256]
			}
			for i := range t.Steps {
				if sha := t.Steps[i].ToolSetSHA256; sha != nil && tools[*sha] != nil {
					t.AddToolSet(*sha, tools[*sha])
				}
			}
			if !yield(t, nil) {
				return
			}
		}
		if err != nil {
			yield(none, err)
		} else if more {
			yield(none, d.corrupt("data/steps", fmt.Errorf("steps of episode %s have no episode", step.EpisodeID)))
		}
	}
}

// annotations returns the annotations, keyed by episode_id.
func (d *Dataset) annotations(ctx context.Context) (map[string][]schemas.AnnotationRow, error) {
	out := map[string][]schemas.AnnotationRow{}
	for row, err := range rows[schemas.AnnotationRow](ctx, d, arrowrec.Annotations) {
		if err != nil {
			return nil, err
		}
		out[row.EpisodeID] = append(out[row.EpisodeID], row)
	}
	return out, nil
}

// ToolSets returns the tool definitions, keyed by tool_set_sha256.
func (d *Dataset) ToolSets(ctx context.Context) (map[string][]schemas.ToolSchema, error) {
	out := map[string][]schemas.ToolSchema{}
	for row, err := range rows[schemas.ToolSetRow](ctx, d, arrowrec.ToolSets) {
		if err != nil {
			return nil, err
		}
		var tools []schemas.ToolSchema
		if err := json.Unmarshal([]byte(row.ToolsJSON), &tools); err != nil {
			return nil, d.corrupt("data/tool_sets", fmt.Errorf("tool set %s: %w", row.ToolSetSHA256, err))
		}
		out[row.ToolSetSHA256] = tools
	}
	return out, nil
}
