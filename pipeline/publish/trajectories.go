package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
)

// ErrNoEpisode means that no episode of the dataset has the requested id.
var ErrNoEpisode = errors.New("no such episode")

// Trajectories streams whole episodes in the sort order of table episodes. It reads each
// table once. An error ends the sequence.
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
		if more {
			yield(none, d.corrupt("data/steps", fmt.Errorf("steps of episode %s have no episode", step.EpisodeID)))
		}
	}
}

// Trajectory returns the episode with the given id. A prefix of at least 4 characters is
// enough if only one id begins with it. Trajectory returns ErrNoEpisode if no id matches,
// and another error if several do.
func (d *Dataset) Trajectory(ctx context.Context, id string) (sinks.Trajectory, error) {
	var found sinks.Trajectory
	n := 0
	for t, err := range d.Trajectories(ctx) {
		if err != nil {
			return found, err
		}
		switch {
		case t.Episode.EpisodeID == id:
			return t, nil
		case len(id) >= 4 && len(id) < len(t.Episode.EpisodeID) && t.Episode.EpisodeID[:len(id)] == id:
			found = t
			n++
		}
	}
	switch n {
	case 0:
		return found, fmt.Errorf("%w %q in %s", ErrNoEpisode, id, d.store.URI())
	case 1:
		return found, nil
	}
	return sinks.Trajectory{}, fmt.Errorf("episode %q: %d ids begin with it: give more characters", id, n)
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

// Kept returns the ids of the episodes that the version's selection kept.
func (d *Dataset) Kept(ctx context.Context) (map[string]bool, error) {
	kept := map[string]bool{}
	for row, err := range d.Selection(ctx) {
		if err != nil {
			return nil, err
		}
		if row.Kept {
			kept[row.EpisodeID] = true
		}
	}
	return kept, nil
}
