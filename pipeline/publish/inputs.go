package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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

// inputs are the staged episodes in table order. An episode takes a few hundred bytes
// of memory: its row is in a scratch file, and its steps stay in the staged object
// until they are written.
type inputs struct {
	episodes []stagedRef
	schema   string // of all records: schemas.LastV1 or schemas.SchemaVersion
	rows     *rowFile
	dead     []schemas.DeadLetterRow // jobs without an episode
	withheld int                     // of these, episodes withheld because of a possible secret
	notes    []schemas.AnnotationRow
	wrong    map[string]float64  // wrong_fact_ratio by episode, if known
	known    *contaminationCheck // their comparison with benchmarks
}

// stagedRef is the location and sort key of one staged episode.
type stagedRef struct {
	at     shard.Key
	group  string // split_group; "": none
	schema string // its schema_version
	row    span
	store  sinks.Store
	key    string
	sha    string // of the object
	size   int64  // estimate for its steps in their table
	blobs  int64  // of its blobs
}

// source iterates over the episodes for a selection. Without steps it reads no staged objects.
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
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(selection.Episode{}, err)
		}
	}
}

// errEnough stops each.
var errEnough = errors.New("enough")

// readStaging indexes every staged object. An episode that is staged twice counts
// once if the bytes are equal, and is an error otherwise. Episodes with a possible
// secret are withheld. The caller closes the rows of the result.
func readStaging(ctx context.Context, stores []sinks.Store, check *redact.Checker, with *provenance.Comparison, scratch string) (_ *inputs, err error) {
	rows, err := newRowFile(scratch)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			rows.close()
		}
	}()
	in := &inputs{rows: rows, known: newContaminationCheck(with)}
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
				seen, err := in.check(check, s)
				mu.Lock()
				defer mu.Unlock()
				if found, ok := errors.AsType[*redact.Found](err); ok {
					in.withhold(s.Episode, found)
					return nil
				}
				if twin, twice := byID[s.Episode.EpisodeID]; twice && twin.sha != sha {
					return fmt.Errorf("episode %s is staged twice with different content (%s in %s, %s in %s): publish only one of these runs",
						s.Episode.EpisodeID, twin.key, twin.store.URI(), o.Key, store.URI())
				} else if twice {
					return nil
				}
				in.known.addEpisode(s.Episode, seen)
				row, err := rows.put(s.Episode)
				byID[s.Episode.EpisodeID] = stagedRef{at: sortKey(s.Episode), group: schemas.Value(s.Episode.SplitGroup), schema: s.Episode.SchemaVersion, row: row, store: store, key: o.Key, sha: sha, size: textSize(s), blobs: blobSize(s)}
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
			return nil, fmt.Errorf("%w: %s", ErrHeld, *in.dead[0].ErrorMessage)
		}
		return nil, fmt.Errorf("%w in %s: finish a run there first (tracesmith run), or name another run directory", ErrEmpty, strings.Join(where, ", "))
	}
	for _, ref := range byID {
		in.episodes = append(in.episodes, ref)
	}
	slices.SortFunc(in.episodes, func(a, b stagedRef) int { return a.at.Compare(b.at) })
	if err := errors.Join(in.checkSplits(), in.checkSchemas()); err != nil {
		return nil, err
	}
	return in, in.readSideFiles(ctx, stores, check)
}

// check looks for secrets in an episode, and compares one without with benchmarks.
func (in *inputs) check(check *redact.Checker, s sinks.Staged) (seen comparison, err error) {
	if err = check.Check("episode "+s.Episode.EpisodeID, s); err == nil {
		seen = in.known.compare(s)
	}
	return seen, err
}

// buckets returns how the tables episodes, steps and blobs are divided into shards.
func (in *inputs) buckets(maxShard int64) (episodes, steps, blobs shard.Buckets) {
	repos, size, blob := map[string]bool{}, int64(0), int64(0)
	for _, e := range in.episodes {
		repos[e.at.Repo] = true
		size += e.size
		blob += e.blobs
	}
	of := func(size int64) shard.Buckets { return shard.BucketsFor(len(repos), size, maxShard) }
	return of(int64(len(in.episodes)) * 4096), of(size), of(blob)
}

// checkSplits rejects a split group that is in two splits.
func (in *inputs) checkSplits() error {
	seen := map[string]string{}
	for _, e := range in.episodes {
		if e.group == "" {
			continue
		}
		if other, ok := seen[e.group]; ok && other != e.at.Split {
			return fmt.Errorf("split group %q is in split %s and in split %s: runs with different split settings cannot share a dataset", e.group, other, e.at.Split)
		}
		seen[e.group] = e.at.Split
	}
	return nil
}

// checkSchemas sets the schema of the version. Columns of two major versions mean
// different things, so they cannot share a dataset.
func (in *inputs) checkSchemas() error {
	first := in.episodes[0]
	for _, e := range in.episodes {
		if schemas.Major(e.schema) != schemas.Major(first.schema) {
			return fmt.Errorf("%w: %s has schema %s and %s has schema %s, whose columns mean different things: publish each to its own place",
				ErrSchemas, first.place(), first.schema, e.place(), e.schema)
		}
	}
	switch schemas.Major(first.schema) {
	case schemas.Major(schemas.LastV1):
		in.schema = schemas.LastV1
	case schemas.Major(schemas.SchemaVersion):
		in.schema = schemas.SchemaVersion
	default:
		return fmt.Errorf("%w: %s has schema %q, and this program writes versions up to %s: use a newer tracesmith", ErrSchemas, first.place(), first.schema, schemas.SchemaVersion)
	}
	return nil
}

// place returns the location of the staged episodes of the same run.
func (r stagedRef) place() string { return r.store.URI() + "/" + path.Dir(r.key) }

// version returns the version's id: 16 hex characters of a hash of everything that
// determines its content.
func (in *inputs) version(cfg Config) string {
	staged := make([][2]string, len(in.episodes))
	for i, e := range in.episodes {
		staged[i] = [2]string{e.at.EpisodeID, e.sha}
	}
	return schemas.Hash(map[string]any{
		"layout": layoutVersion, "cut": cutVersion, "texts": textVersion, "schema": in.schema, "dataset": cfg.Name, "producer": cfg.Producer,
		"recipe": cfg.Selection.SHA256(), "imported": cfg.Imported, "max_shard": cfg.MaxShard, "staged": staged,
		"dead": in.dead, "annotations": in.notes, "benchmarks": in.known.identity(),
	})[:16]
}

// each calls use with the staged episodes in table order, and reads a few ahead.
func (in *inputs) each(ctx context.Context, use func(sinks.Staged) error) error {
	for batch := range slices.Chunk(in.episodes, 4*readers) {
		got := make([]sinks.Staged, len(batch))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(readers)
		for i, ref := range batch {
			g.Go(func() error {
				s, sha, err := fetchStaged(gctx, ref.store, ref.key)
				if err == nil && sha != ref.sha {
					err = fmt.Errorf("staged episode %s changed during the publish: do not edit staging", ref.key)
				}
				got[i] = s
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, s := range got {
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

// setWrongFactRatio fills them into a row.
func (in *inputs) setWrongFactRatio(e *schemas.EpisodeRow) {
	if ratio, known := in.wrong[e.EpisodeID]; known {
		e.WrongFactRatio = &ratio
	}
}

// withhold records an episode with a possible secret as a dead letter instead of
// publishing it.
func (in *inputs) withhold(e schemas.EpisodeRow, found *redact.Found) {
	in.dead = append(in.dead, schemas.DeadLetterRow{
		RunID: e.RunID, UnitKey: e.EpisodeID, Stage: "publish", State: withheldState, ErrorClass: new("secret_found"),
		ErrorMessage: new(found.Error()), Attempts: 1, FirstAt: &e.CreatedAt, LastAt: e.EndedAt, CostUSD: e.CostUSD, InputRef: e.TaskKey,
	})
	in.withheld++
}

// readSideFiles reads dead letters and annotations of the runs. A secret in one of
// them is an error, because people and other programs write these files after the run.
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
		in.dead, in.notes = append(in.dead, dead...), append(in.notes, notes...)
	}
	// The same directory may be given twice, and a retried job may have an episode now.
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
	in.notes = uniqueAnnotations(in.notes)
	in.wrong = WrongFacts(in.notes)
	return nil
}
