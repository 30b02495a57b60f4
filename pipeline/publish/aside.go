package publish

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// What stands beside the staged episodes in a run directory, one JSON object a
// line, and where it is published.
const (
	deadLettersKey  = "dead-letters.jsonl" // schemas.DeadLetterRow
	annotationsKey  = "annotations.jsonl"  // schemas.AnnotationRow
	exclusionsPath  = "exclusions/dead-letters.parquet"
	annotationsPath = "data/annotations/part-00000-of-00001.parquet"
)

// deadWithheld is the state of a job whose episode is withheld; the others failed.
const deadWithheld = "filtered"

// ErrHeld: every episode still holds a secret.
var ErrHeld = errors.New("all episodes are held back")

// hold notes an episode that still holds a secret: it is not published, and
// stands among the dead letters.
func (in *inputs) hold(e schemas.EpisodeRow, found *redact.Found) {
	in.dead = append(in.dead, schemas.DeadLetterRow{
		RunID: e.RunID, UnitKey: e.EpisodeID, Stage: "publish", State: deadWithheld, ErrorClass: new("secret_found"),
		ErrorMessage: new(found.Error()), Attempts: 1, FirstAt: &e.CreatedAt, LastAt: e.EndedAt, CostUSD: e.CostUSD, InputRef: e.TaskKey,
	})
	in.held++
}

// aside reads dead letters and annotations of the runs. A secret in one of them
// stops the publish: they are written by people and programs after the run.
func (in *inputs) aside(ctx context.Context, stores []sinks.Store, check *redact.Checker) error {
	for _, store := range stores {
		dead, err := DeadLetters(ctx, store, check)
		if err != nil {
			return err
		}
		notes, err := Annotations(ctx, store, check)
		if err != nil {
			return err
		}
		in.dead, in.notes = append(in.dead, dead...), append(in.notes, notes...)
	}
	// The same directory may be given twice, and a retried unit may have made it.
	there := map[string]bool{}
	for _, e := range in.episodes {
		there[e.at.EpisodeID] = true
	}
	in.dead = slices.DeleteFunc(in.dead, func(d schemas.DeadLetterRow) bool { return there[d.UnitKey] })
	slices.SortFunc(in.dead, func(a, b schemas.DeadLetterRow) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.UnitKey, b.UnitKey))
	})
	in.dead = slices.CompactFunc(in.dead, func(a, b schemas.DeadLetterRow) bool { return a.RunID == b.RunID && a.UnitKey == b.UnitKey })
	in.notes = slices.DeleteFunc(in.notes, func(n schemas.AnnotationRow) bool { return !there[n.EpisodeID] })
	in.notes = eachOnce(in.notes)
	in.wrong = WrongFacts(in.notes)
	return nil
}

// DeadLetters reads which jobs of the run directory in store have no episode:
// dead-letters.jsonl. Without that file there are none.
func DeadLetters(ctx context.Context, store sinks.Store, check *redact.Checker) ([]schemas.DeadLetterRow, error) {
	return lines[schemas.DeadLetterRow](ctx, store, deadLettersKey, check)
}

// Annotations reads what was said later about the episodes that store has staged:
// annotations.jsonl, a schemas.AnnotationRow a line. Without that file there are none.
func Annotations(ctx context.Context, store sinks.Store, check *redact.Checker) ([]schemas.AnnotationRow, error) {
	notes, err := lines[schemas.AnnotationRow](ctx, store, annotationsKey, check)
	for i, n := range notes {
		if n.AnnotationID == "" || n.EpisodeID == "" || n.Kind == "" || n.Annotator == "" || n.CreatedAt.IsZero() {
			return nil, fmt.Errorf("%w: %s/%s, annotation %d: annotation_id, episode_id, kind, annotator and created_at must be there: mend or delete the line", ErrDamaged, store.URI(), annotationsKey, i+1)
		}
	}
	return eachOnce(notes), err
}

// eachOnce sorts annotations by episode and id, the first of an id in an episode.
func eachOnce(notes []schemas.AnnotationRow) []schemas.AnnotationRow {
	slices.SortStableFunc(notes, func(a, b schemas.AnnotationRow) int {
		return cmp.Or(cmp.Compare(a.EpisodeID, b.EpisodeID), cmp.Compare(a.AnnotationID, b.AnnotationID))
	})
	return slices.CompactFunc(notes, func(a, b schemas.AnnotationRow) bool {
		return a.EpisodeID == b.EpisodeID && a.AnnotationID == b.AnnotationID
	})
}

// WrongFacts is the column wrong_fact_ratio of episodes: facts labelled wrong
// among those labelled, by episode. Where none is labelled, nothing is known.
func WrongFacts(notes []schemas.AnnotationRow) map[string]float64 {
	labelled, ratio := map[string]float64{}, map[string]float64{}
	for _, n := range notes {
		if n.Kind == "fact" && n.Label != nil {
			labelled[n.EpisodeID]++
			if *n.Label == "wrong" {
				ratio[n.EpisodeID]++
			}
		}
	}
	for id, n := range labelled {
		ratio[id] /= n
	}
	return ratio
}

// judged fills them into a row.
func (in *inputs) judged(e *schemas.EpisodeRow) {
	if ratio, known := in.wrong[e.EpisodeID]; known {
		e.WrongFactRatio = &ratio
	}
}

// maxLine bounds one line of a side file.
const maxLine = 1 << 20

// lines reads a side file of a run; one that is not there has none.
func lines[T any](ctx context.Context, store sinks.Store, key string, check *redact.Checker) ([]T, error) {
	body, err := store.Get(ctx, key)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	var out []T
	scan := bufio.NewScanner(bytes.NewReader(body))
	scan.Buffer(nil, maxLine)
	for n := 1; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		place := fmt.Sprintf("%s/%s, line %d", store.URI(), key, n)
		var row T
		dec := json.NewDecoder(bytes.NewReader(scan.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&row); err != nil {
			return nil, fmt.Errorf("%w: %s: %w: mend or delete the line", ErrDamaged, place, err)
		}
		if err := check.Check(place, row); err != nil {
			return nil, fmt.Errorf("%w: mend or delete the line", err)
		}
		out = append(out, row)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s/%s: %w", ErrDamaged, store.URI(), key, err)
	}
	return out, nil
}

// writeAside makes the files of the side tables that have rows.
func (p *publication) writeAside() ([]builtFile, error) {
	var out []builtFile
	if len(p.in.dead) > 0 {
		f, err := writeOne(p, arrowrec.DeadLetters, exclusionsPath, p.in.dead)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(p.in.notes) > 0 {
		f, err := writeOne(p, arrowrec.Annotations, annotationsPath, p.in.notes)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// writeOne makes one file of a table, whatever its size.
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
	return built(table.Name, path, shards[0]), nil
}
