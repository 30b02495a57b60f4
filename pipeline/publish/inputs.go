package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// inputs holds the staged episodes in the order of the tables. An episode takes only a few
// hundred bytes of memory: its row is in a scratch file, and its steps stay in the staged
// object until they are written.
type inputs struct {
	episodes        []stagedRef
	schema          string // of all records: schemas.LastV1 or schemas.SchemaVersion
	rows            *rowFile
	deadLetters     []schemas.DeadLetterRow // jobs without an episode, and withheld episodes
	withheld        int                     // number of episodes withheld because of a possible secret
	annotations     []schemas.AnnotationRow
	wrongFactRatios map[string]float64  // wrong_fact_ratio by episode, if known
	contamination   *contaminationCheck // comparison of the episodes with benchmarks
}

// stagedRef describes one staged episode and where to find it.
type stagedRef struct {
	sortKey shard.Key
	group   string // split_group; "" if it has none
	schema  string // schema_version
	row     span
	store   sinks.Store
	key     string
	sha     string // SHA-256 of the object
	size    int64  // estimated bytes of its steps in their table
	blobs   int64  // bytes of its blobs
}

// source iterates over the episodes for a selection. It reads the staged objects only if steps is true.
func (in *inputs) source(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
	return func(yield func(selection.Episode, error) bool) {
		if !steps {
			for _, e := range in.episodes {
				row, err := in.row(e)
				if !yield(selection.Episode{Row: row}, err) || err != nil {
					return
				}
			}
			return
		}
		err := in.each(ctx, func(s sinks.Staged) error {
			in.setWrongFactRatio(&s.Episode)
			if !yield(selection.Episode{Row: s.Episode, Steps: s.Steps}, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(selection.Episode{}, err)
		}
	}
}

// errStop is an error with which a callback stops inputs.each.
var errStop = errors.New("stop")

// readStaging indexes all staged objects. If an episode is staged twice, it counts once if
// the bytes are equal, and is an error otherwise. Episodes with a possible secret are
// withheld. The caller must close the rows of the result.
func readStaging(ctx context.Context, stores []sinks.Store, check *redact.Checker, benchmarks *provenance.Comparison, scratch string) (_ *inputs, err error) {
	rows, err := newRowFile(scratch)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			rows.close()
		}
	}()
	in := &inputs{rows: rows, contamination: newContaminationCheck(benchmarks)}
	var (
		mu   sync.Mutex
		byID = map[string]stagedRef{}
	)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	var listErr error
	for _, store := range stores {
		for o, err := range store.List(gctx, "staging/") {
			if err != nil {
				listErr = fmt.Errorf("listing staged episodes: %w", err)
				break
			}
			if !strings.HasSuffix(o.Key, ".json.zst") {
				continue
			}
			g.Go(func() error {
				s, sha, err := fetchStaged(gctx, store, o.Key)
				if err != nil {
					return err
				}
				compared, err := in.check(check, s)
				mu.Lock()
				defer mu.Unlock()
				if found, ok := errors.AsType[*redact.Found](err); ok {
					in.withhold(s.Episode, found)
					return nil
				}
				if other, staged := byID[s.Episode.EpisodeID]; staged && other.sha != sha {
					return fmt.Errorf("episode %s is staged twice with different content (%s in %s, %s in %s): publish only one of these runs",
						s.Episode.EpisodeID, other.key, other.store.URI(), o.Key, store.URI())
				} else if staged {
					return nil
				}
				in.contamination.addEpisode(s.Episode, compared)
				row, err := rows.put(s.Episode)
				byID[s.Episode.EpisodeID] = stagedRef{sortKey: sortKey(s.Episode), group: schemas.Value(s.Episode.SplitGroup), schema: s.Episode.SchemaVersion, row: row, store: store, key: o.Key, sha: sha, size: textSize(s), blobs: blobSize(s)}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if listErr != nil {
		return nil, listErr
	}
	if len(byID) == 0 {
		var where []string
		for _, s := range stores {
			where = append(where, s.URI())
		}
		if in.withheld > 0 {
			return nil, fmt.Errorf("%w: %s", ErrWithheld, *in.deadLetters[0].ErrorMessage)
		}
		return nil, fmt.Errorf("%w in %s: finish a run there first (tracesmith run), or name another run directory", ErrEmpty, strings.Join(where, ", "))
	}
	in.episodes = slices.SortedFunc(maps.Values(byID), func(a, b stagedRef) int { return a.sortKey.Compare(b.sortKey) })
	if err := errors.Join(in.checkSplits(), in.checkSchemas()); err != nil {
		return nil, err
	}
	return in, in.readSideFiles(ctx, stores, check)
}

// check looks for secrets in an episode. If it finds none, it compares the episode with the
// benchmarks.
func (in *inputs) check(check *redact.Checker, s sinks.Staged) (compared comparison, err error) {
	if err = check.Check("episode "+s.Episode.EpisodeID, s); err == nil {
		compared = in.contamination.compare(s)
	}
	return compared, err
}

// buckets returns how to divide the tables episodes, steps and blobs into shards.
func (in *inputs) buckets(maxShard int64) (episodes, steps, blobs shard.Buckets) {
	repos, size, blob := map[string]bool{}, int64(0), int64(0)
	for _, e := range in.episodes {
		repos[e.sortKey.Repo] = true
		size += e.size
		blob += e.blobs
	}
	bucketsFor := func(size int64) shard.Buckets { return shard.BucketsFor(len(repos), size, maxShard) }
	return bucketsFor(int64(len(in.episodes)) * 4096), bucketsFor(size), bucketsFor(blob) // a row of episodes has about 4 KiB
}

// checkSplits returns an error if a split group is in two splits.
func (in *inputs) checkSplits() error {
	seen := map[string]string{}
	for _, e := range in.episodes {
		if e.group == "" {
			continue
		}
		if other, ok := seen[e.group]; ok && other != e.sortKey.Split {
			return fmt.Errorf("split group %q is in split %s and in split %s: runs with different split settings cannot share a dataset", e.group, other, e.sortKey.Split)
		}
		seen[e.group] = e.sortKey.Split
	}
	return nil
}

// checkSchemas sets the schema of the version. It returns an error if the episodes have
// several major schema versions, whose columns mean different things, or an unknown one.
func (in *inputs) checkSchemas() error {
	first := in.episodes[0]
	for _, e := range in.episodes {
		if schemas.Major(e.schema) != schemas.Major(first.schema) {
			return fmt.Errorf("%w: %s has schema %s and %s has schema %s, whose columns mean different things: publish each to its own place",
				ErrSchemas, first.runLocation(), first.schema, e.runLocation(), e.schema)
		}
	}
	switch schemas.Major(first.schema) {
	case schemas.Major(schemas.LastV1):
		in.schema = schemas.LastV1
	case schemas.Major(schemas.SchemaVersion):
		in.schema = schemas.SchemaVersion
	default:
		return fmt.Errorf("%w: %s has schema %q, and this program writes versions up to %s: use a newer tracesmith", ErrSchemas, first.runLocation(), first.schema, schemas.SchemaVersion)
	}
	return nil
}

// runLocation returns the location of the staged episodes of the same run.
func (r stagedRef) runLocation() string { return r.store.URI() + "/" + path.Dir(r.key) }

// version returns the ID of the version: 16 hexadecimal digits of a hash of everything that
// determines its content.
func (in *inputs) version(cfg Config) string {
	staged := make([][2]string, len(in.episodes))
	for i, e := range in.episodes {
		staged[i] = [2]string{e.sortKey.EpisodeID, e.sha}
	}
	return schemas.Hash(map[string]any{
		"layout": layoutVersion, "cut": tablesVersion, "texts": textVersion, "schema": in.schema, "dataset": cfg.Name, "producer": cfg.Producer,
		"recipe": cfg.Selection.SHA256(), "imported": cfg.Imported, "max_shard": cfg.MaxShard, "staged": staged,
		"dead": in.deadLetters, "annotations": in.annotations, "benchmarks": in.contamination.identity(),
	})[:16]
}

// each calls use with the staged episodes in the order of the tables, and reads a few ahead.
func (in *inputs) each(ctx context.Context, use func(sinks.Staged) error) error {
	for batch := range slices.Chunk(in.episodes, 4*readers) {
		episodes := make([]sinks.Staged, len(batch))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(readers)
		for i, ref := range batch {
			g.Go(func() error {
				s, sha, err := fetchStaged(gctx, ref.store, ref.key)
				if err == nil && sha != ref.sha {
					err = fmt.Errorf("staged episode %s changed during the publish: do not edit staging", ref.key)
				}
				episodes[i] = s
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, s := range episodes {
			if err := use(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// row returns the row of a staged episode, with wrong_fact_ratio from the annotations.
func (in *inputs) row(ref stagedRef) (schemas.EpisodeRow, error) {
	e, err := in.rows.get(ref.row)
	in.setWrongFactRatio(&e)
	return e, err
}

// setWrongFactRatio sets wrong_fact_ratio in a row, if the annotations give one.
func (in *inputs) setWrongFactRatio(e *schemas.EpisodeRow) {
	if ratio, known := in.wrongFactRatios[e.EpisodeID]; known {
		e.WrongFactRatio = &ratio
	}
}

// withhold records an episode with a possible secret as a dead letter, so that it is not
// published.
func (in *inputs) withhold(e schemas.EpisodeRow, found *redact.Found) {
	in.deadLetters = append(in.deadLetters, schemas.DeadLetterRow{
		RunID: e.RunID, UnitKey: e.EpisodeID, Stage: "publish", State: withheldState, ErrorClass: new("secret_found"),
		ErrorMessage: new(found.Error()), Attempts: 1, FirstAt: &e.CreatedAt, LastAt: e.EndedAt, CostUSD: e.CostUSD, InputRef: e.TaskKey,
	})
	in.withheld++
}

// readSideFiles reads the dead letters and annotations of the runs. A secret in one of
// these files is an error, because people and other programs write them after the run,
// when nothing redacts them.
func (in *inputs) readSideFiles(ctx context.Context, stores []sinks.Store, check *redact.Checker) error {
	for _, store := range stores {
		dead, err := DeadLetters(ctx, store, check)
		if err != nil {
			return err
		}
		notes, err := Annotations(ctx, store, check)
		if err != nil {
			return err
		}
		in.deadLetters, in.annotations = append(in.deadLetters, dead...), append(in.annotations, notes...)
	}
	// The same directory may be given twice, and a retried job may have an episode now.
	hasEpisode := map[string]bool{}
	for _, e := range in.episodes {
		hasEpisode[e.sortKey.EpisodeID] = true
	}
	in.deadLetters = slices.DeleteFunc(in.deadLetters, func(d schemas.DeadLetterRow) bool { return hasEpisode[d.UnitKey] })
	slices.SortFunc(in.deadLetters, func(a, b schemas.DeadLetterRow) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.UnitKey, b.UnitKey))
	})
	in.deadLetters = slices.CompactFunc(in.deadLetters, func(a, b schemas.DeadLetterRow) bool { return a.RunID == b.RunID && a.UnitKey == b.UnitKey })
	in.annotations = slices.DeleteFunc(in.annotations, func(n schemas.AnnotationRow) bool { return !hasEpisode[n.EpisodeID] })
	in.annotations = uniqueAnnotations(in.annotations)
	in.wrongFactRatios = WrongFacts(in.annotations)
	return nil
}
