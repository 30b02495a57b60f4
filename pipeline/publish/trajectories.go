package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// Trajectories streams whole episodes in the sort order of the table episodes. It reads
// each table once, or the table episodes twice if SkipDamaged leaves out some of it. The sequence ends
// after the first error.
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
		readable, err := d.readableEpisodes(ctx)
		if err != nil {
			yield(none, err)
			return
		}
		next, stop := iter.Pull2(stepsOf(d.Steps(ctx), readable))
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
			if len(t.Steps) != int(e.NSteps) && len(d.Damaged()) == 0 {
				yield(none, d.corrupt("data/steps", fmt.Errorf("episode %s has %d steps there, but %d in its row", e.EpisodeID, len(t.Steps), e.NSteps)))
				return
			}
			addTools(&t, tools)
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

// Trajectory returns the whole episode of a row of the table episodes. It reads only the files
// of steps that can contain the episode, and decodes only its rows.
func (d *Dataset) Trajectory(ctx context.Context, e schemas.EpisodeRow) (sinks.Trajectory, error) {
	t := sinks.Trajectory{Episode: e}
	tools, err := d.ToolSets(ctx)
	if err != nil {
		return t, err
	}
	annotations, err := d.annotations(ctx)
	if err != nil {
		return t, err
	}
	t.Annotations = annotations[e.EpisodeID]
	key := []string{e.Split, e.Repo, e.InstanceID, e.EpisodeID}
	for _, f := range d.Manifest.Files {
		if f.Table != arrowrec.Steps.Name || !mayContain(f, key) {
			continue
		}
		local, err := d.File(ctx, f)
		if err != nil {
			return t, err
		}
		for row, err := range formats.ReadWhere[schemas.StepRow](local, arrowrec.Steps, "episode_id", e.EpisodeID) {
			if err != nil {
				return t, err
			}
			t.Steps = append(t.Steps, row)
		}
	}
	slices.SortStableFunc(t.Steps, func(a, b schemas.StepRow) int { return cmp.Compare(a.StepIndex, b.StepIndex) })
	if len(t.Steps) != int(e.NSteps) {
		return t, d.corrupt("data/steps", fmt.Errorf("episode %s has %d steps there, but %d in its row", e.EpisodeID, len(t.Steps), e.NSteps))
	}
	addTools(&t, tools)
	return t, nil
}

// Blob returns the text of table blobs with a hash. The error wraps sinks.ErrNotFound if there is none, or
// if it is in a file that SkipDamaged leaves out.
func (d *Dataset) Blob(ctx context.Context, sha string) (string, error) {
	for _, f := range d.Manifest.Files {
		if f.Table != arrowrec.Blobs.Name {
			continue
		}
		local, err := d.File(ctx, f)
		if d.skips(f, err) {
			continue
		}
		if err != nil {
			return "", err
		}
		for row, err := range formats.ReadWhere[schemas.BlobRow](local, arrowrec.Blobs, "sha256", sha) {
			return row.Content, err
		}
	}
	return "", fmt.Errorf("text %s: %w", sha, sinks.ErrNotFound)
}

// mayContain reports whether the keys of a file, or their prefixes, include key.
func mayContain(f schemas.ManifestFile, key []string) bool {
	lowest, highest := f.MinKey[:min(len(f.MinKey), len(key))], f.MaxKey[:min(len(f.MaxKey), len(key))]
	return slices.Compare(key[:len(lowest)], lowest) >= 0 && slices.Compare(key[:len(highest)], highest) <= 0
}

// addTools sets the tools of an episode and of its turns.
func addTools(t *sinks.Trajectory, tools map[string][]schemas.ToolSchema) {
	if sha := t.Episode.ToolSetSHA256; sha != nil {
		t.Tools = tools[*sha]
	}
	for i := range t.Steps {
		if sha := t.Steps[i].ToolSetSHA256; sha != nil && tools[*sha] != nil {
			t.AddToolSet(*sha, tools[*sha])
		}
	}
}

// stepsOf leaves out the steps of episodes that are not in ids, unless ids is nil.
func stepsOf(steps iter.Seq2[schemas.StepRow, error], ids map[string]bool) iter.Seq2[schemas.StepRow, error] {
	return func(yield func(schemas.StepRow, error) bool) {
		for step, err := range steps {
			if err == nil && ids != nil && !ids[step.EpisodeID] {
				continue
			}
			if !yield(step, err) {
				return
			}
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
