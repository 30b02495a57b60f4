package publish

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// tables holds the writers of the tables that one pass over the staged episodes fills.
type tables struct {
	episodes *shard.Writer[schemas.EpisodeRow]
	steps    *shard.Writer[schemas.StepRow]
	blobs    *shard.Writer[schemas.BlobRow]
	toolSets *shard.Writer[schemas.ToolSetRow]
	seen     map[string]bool // hashes of blobs and tool sets already written
	tally    *Tally
}

// writeTables writes all Parquet files of the version. Shards do not contain the version,
// so that equal rows give equal files in all versions.
func (p *publication) writeTables(ctx context.Context, sel selection.Result) ([]builtFile, *Tally, error) {
	meta := arrowrec.Meta{Producer: "tracesmith " + p.cfg.Producer}
	cfg := func(t *arrowrec.Table, b shard.Buckets) shard.Config {
		return shard.Config{Dir: p.scratch, Table: t.At(p.in.schema), Meta: meta, MaxBytes: p.cfg.MaxShard, Buckets: b}
	}
	episodes, steps, blobs := p.in.buckets(p.cfg.MaxShard)
	t := &tables{
		episodes: shard.New[schemas.EpisodeRow](cfg(arrowrec.Episodes, episodes)),
		steps:    shard.New[schemas.StepRow](cfg(arrowrec.Steps, steps)),
		blobs:    shard.New[schemas.BlobRow](cfg(arrowrec.Blobs, blobs)),
		toolSets: shard.New[schemas.ToolSetRow](cfg(arrowrec.ToolSets, -1 /* no buckets */)),
		seen:     map[string]bool{}, tally: NewTally(),
	}
	defer t.abort()
	if err := p.in.each(ctx, func(s sinks.Staged) error {
		p.in.setWrongFactRatio(&s.Episode)
		return t.add(s)
	}); err != nil {
		return nil, nil, err
	}
	files, err := t.close()
	if err != nil {
		return nil, nil, err
	}
	selectionFile, err := writeOne(p, arrowrec.Selection, "selection/"+sel.Info.Name+".parquet", sel.Rows)
	if err != nil {
		return nil, nil, err
	}
	sideTables, err := p.writeSideTables()
	return append(append(files, selectionFile), sideTables...), t.tally, err
}

// add appends an episode to the tables. Blobs and tool sets that an earlier episode had are not
// written again.
func (t *tables) add(s sinks.Staged) error {
	e := s.Episode
	k := sortKey(e)
	t.tally.Add(e, s.Steps)
	if err := t.episodes.Append(k, []schemas.EpisodeRow{e}); err != nil {
		return fmt.Errorf("episode %s: %w", e.EpisodeID, err)
	}
	if len(s.Steps) > 0 {
		if err := t.steps.Append(k, s.Steps); err != nil {
			return fmt.Errorf("episode %s: %w", e.EpisodeID, err)
		}
	}
	for _, b := range s.Blobs {
		if t.seen[b.SHA256] {
			continue
		}
		t.seen[b.SHA256] = true
		row := schemas.BlobRow(b)
		if err := t.blobs.Append(shard.Key{Repo: e.Repo}, []schemas.BlobRow{row}); err != nil {
			return fmt.Errorf("blob %s of episode %s: %w", b.SHA256, e.EpisodeID, err)
		}
	}
	if e.ToolSetSHA256 != nil {
		if err := t.addTools(e.EpisodeID, *e.ToolSetSHA256, s.Tools); err != nil {
			return err
		}
	}
	for _, set := range s.ToolSets {
		if err := t.addTools(e.EpisodeID, schemas.Hash(set), set); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) addTools(episode, sha string, tools []schemas.ToolSchema) error {
	if t.seen[sha] {
		return nil
	}
	t.seen[sha] = true
	raw, err := schemas.CanonicalJSON(tools)
	if err != nil {
		return fmt.Errorf("tools of episode %s: %w", episode, err)
	}
	row := schemas.ToolSetRow{ToolSetSHA256: sha, ToolsJSON: string(raw), NTools: int32(len(tools))}
	for _, tool := range tools {
		row.ToolNames = append(row.ToolNames, tool.Name)
	}
	return t.toolSets.Append(shard.Key{EpisodeID: row.ToolSetSHA256}, []schemas.ToolSetRow{row})
}

// close finishes the tables. A table without rows has no file, except the table episodes.
func (t *tables) close() ([]builtFile, error) {
	var files []builtFile
	for _, w := range []struct {
		table *arrowrec.Table
		used  bool
		close func() ([]shard.Shard, error)
	}{
		{arrowrec.Episodes, true, t.episodes.Close},
		{arrowrec.Steps, t.steps.Used(), t.steps.Close},
		{arrowrec.Blobs, t.blobs.Used(), t.blobs.Close},
		{arrowrec.ToolSets, t.toolSets.Used(), t.toolSets.Close},
	} {
		if !w.used {
			continue
		}
		shards, err := w.close()
		if err != nil {
			return nil, err
		}
		for _, s := range shards {
			files = append(files, newBuiltFile(w.table.Name, path.Join("data", w.table.Name, filepath.Base(s.Path)), s))
		}
	}
	return files, nil
}

func (t *tables) abort() {
	t.episodes.Abort()
	t.steps.Abort()
	t.blobs.Abort()
	t.toolSets.Abort()
}

// writeSideTables writes the tables of dead letters and annotations, if they have rows.
func (p *publication) writeSideTables() ([]builtFile, error) {
	var out []builtFile
	if len(p.in.deadLetters) > 0 {
		f, err := writeOne(p, arrowrec.DeadLetters, exclusionsPath, p.in.deadLetters)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(p.in.annotations) > 0 {
		f, err := writeOne(p, arrowrec.Annotations, annotationsPath, p.in.annotations)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func writeOne[T any](p *publication, table *arrowrec.Table, path string, rows []T) (builtFile, error) {
	meta := arrowrec.Meta{Producer: "tracesmith " + p.cfg.Producer, DatasetVersion: p.version}
	w := shard.New[T](shard.Config{Dir: p.scratch, Table: table.At(p.in.schema), Meta: meta})
	defer w.Abort()
	if err := w.Append(shard.Key{}, rows); err != nil {
		return builtFile{}, fmt.Errorf("writing %s: %w", path, err)
	}
	shards, err := w.Close()
	if err != nil {
		return builtFile{}, fmt.Errorf("writing %s: %w", path, err)
	}
	return newBuiltFile(table.Name, path, shards[0]), nil
}
