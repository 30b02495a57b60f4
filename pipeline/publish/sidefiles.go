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
	"github.com/tracesmith/tracesmith/sinks"
)

// Side files are next to staging/ in a run directory and have one JSON object per
// line. They are published as tables.
const (
	deadLettersKey  = "dead-letters.jsonl" // schemas.DeadLetterRow
	annotationsKey  = "annotations.jsonl"  // schemas.AnnotationRow
	exclusionsPath  = "exclusions/dead-letters.parquet"
	annotationsPath = "data/annotations/part-00000-of-00001.parquet"
)

// withheldState is the state of a dead letter for a withheld episode. All other dead letters are for
// failed jobs.
const withheldState = "filtered"

// DeadLetters returns the jobs without an episode from dead-letters.jsonl of the run
// directory in store. It returns none if there is no such file.
func DeadLetters(ctx context.Context, store sinks.Store, check *redact.Checker) ([]schemas.DeadLetterRow, error) {
	return readSideFile[schemas.DeadLetterRow](ctx, store, deadLettersKey, check)
}

// Annotations returns the annotations of the episodes in store from annotations.jsonl. It
// returns none if there is no such file.
func Annotations(ctx context.Context, store sinks.Store, check *redact.Checker) ([]schemas.AnnotationRow, error) {
	notes, err := readSideFile[schemas.AnnotationRow](ctx, store, annotationsKey, check)
	for i, n := range notes {
		if n.AnnotationID == "" || n.EpisodeID == "" || n.Kind == "" || n.Annotator == "" || n.CreatedAt.IsZero() {
			return nil, fmt.Errorf("%w: %s/%s, annotation %d: annotation_id, episode_id, kind, annotator and created_at are required: fix or delete the line", ErrDamaged, store.URI(), annotationsKey, i+1)
		}
	}
	return uniqueAnnotations(notes), err
}

// uniqueAnnotations sorts annotations by episode and ID. If several have the same episode
// and ID, it keeps the first.
func uniqueAnnotations(notes []schemas.AnnotationRow) []schemas.AnnotationRow {
	slices.SortStableFunc(notes, func(a, b schemas.AnnotationRow) int {
		return cmp.Or(cmp.Compare(a.EpisodeID, b.EpisodeID), cmp.Compare(a.AnnotationID, b.AnnotationID))
	})
	return slices.CompactFunc(notes, func(a, b schemas.AnnotationRow) bool {
		return a.EpisodeID == b.EpisodeID && a.AnnotationID == b.AnnotationID
	})
}

// WrongFacts returns wrong_fact_ratio by episode: the share of labeled facts that are
// labeled wrong. Episodes without a labeled fact are not in the map.
func WrongFacts(notes []schemas.AnnotationRow) map[string]float64 {
	labeled, ratio := map[string]float64{}, map[string]float64{}
	for _, n := range notes {
		if n.Kind == "fact" && n.Label != nil {
			labeled[n.EpisodeID]++
			if *n.Label == "wrong" {
				ratio[n.EpisodeID]++
			}
		}
	}
	for id, n := range labeled {
		ratio[id] /= n
	}
	return ratio
}

// maxLine is the maximum length of a line of a side file, in bytes.
const maxLine = 1 << 20

// readSideFile reads the rows of a side file; none if it does not exist.
func readSideFile[T any](ctx context.Context, store sinks.Store, key string, check *redact.Checker) ([]T, error) {
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
			return nil, fmt.Errorf("%w: %s: %w: fix or delete the line", ErrDamaged, place, err)
		}
		if err := check.Check(place, row); err != nil {
			return nil, fmt.Errorf("%w: fix or delete the line", err)
		}
		out = append(out, row)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s/%s: %w", ErrDamaged, store.URI(), key, err)
	}
	return out, nil
}
