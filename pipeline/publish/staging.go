package publish

import (
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

// readers is how many staged objects are fetched and unpacked at a time.
const readers = 4

// inputs are the staged episodes in table order. What is in memory grows by some
// hundred bytes with each: their rows stand in a scratch file, their steps are left
// in their objects until they are written.
type inputs struct {
	episodes []stagedRef
	schema   string // of the records: schemas.LastV1 or schemas.SchemaVersion
	rows     *rowFile
	dead     []schemas.DeadLetterRow // units that have no episode here
	held     int                     // of them, episodes that still hold a secret
	notes    []schemas.AnnotationRow
	wrong    map[string]float64 // wrong_fact_ratio by episode, where it is known
	known    *contaminated      // what benchmarks know of them
}

// stagedRef is one staged episode and where its object is.
type stagedRef struct {
	at     shard.Key
	group  string // split_group, "" where there is none
	schema string // its schema_version
	row    span
	store  sinks.Store
	key    string
	sha    string // of the object
	size   int64  // of the texts of its steps, about
	blobs  int64  // of its blobs
}

// source hands the episodes to a selection; without steps nothing is read again.
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
			in.judged(&s.Episode)
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

// errEnough ends each early.
var errEnough = errors.New("enough")

// readStaging indexes every staged object. The same episode in two places is
// taken once if the bytes agree and refused if they do not. Those that still hold
// a secret are held back. The caller closes what it gets.
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
	in := &inputs{rows: rows, known: newContaminated(with)}
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
				seen, err := in.compared(check, s)
				mu.Lock()
				defer mu.Unlock()
				if found, ok := errors.AsType[*redact.Found](err); ok {
					in.hold(s.Episode, found)
					return nil
				}
				if twin, twice := byID[s.Episode.EpisodeID]; twice && twin.sha != sha {
					return fmt.Errorf("episode %s is staged twice with different content (%s in %s, %s in %s): publish only one of these runs",
						s.Episode.EpisodeID, twin.key, twin.store.URI(), o.Key, store.URI())
				} else if twice {
					return nil
				}
				in.known.add(s.Episode, seen)
				row, err := rows.put(s.Episode)
				byID[s.Episode.EpisodeID] = stagedRef{at: placeOf(s.Episode), group: text(s.Episode.SplitGroup), schema: s.Episode.SchemaVersion, row: row, store: store, key: o.Key, sha: sha, size: textSize(s), blobs: blobSize(s)}
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
		if in.held > 0 {
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
	return in, in.aside(ctx, stores, check)
}

// compared compares an episode that holds no secret with benchmarks.
func (in *inputs) compared(check *redact.Checker, s sinks.Staged) (seen looked, err error) {
	if err = check.Check("episode "+s.Episode.EpisodeID, s); err == nil {
		seen = in.known.look(s)
	}
	return seen, err
}

// textSize is about what the steps of an episode take in their table.
func textSize(s sinks.Staged) int64 {
	size := int64(0)
	for i := range s.Steps {
		st := &s.Steps[i]
		size += 500 + int64(len(st.Message))
		for _, t := range []*string{st.Reasoning, st.Observation} {
			if t != nil {
				size += int64(len(*t))
			}
		}
	}
	return size
}

func blobSize(s sinks.Staged) int64 {
	size := int64(0)
	for _, b := range s.Blobs {
		size += b.Bytes
	}
	return size
}

// buckets are those of the tables episodes, steps and blobs.
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

// fetchStaged reads and checks one object.
func fetchStaged(ctx context.Context, store sinks.Store, key string) (sinks.Staged, string, error) {
	body, err := store.Get(ctx, key)
	if err != nil {
		return sinks.Staged{}, "", fmt.Errorf("reading staged episode: %w", err)
	}
	s, err := sinks.DecodeStaged(body)
	if err == nil {
		err = checkStaged(s)
	}
	if err != nil {
		return s, "", fmt.Errorf("%w: %s/%s: %w: delete it and run again", ErrDamaged, store.URI(), key, err)
	}
	return s, schemas.HashBytes(body), nil
}

// checkStaged refuses what would break the tables: a hole in the sort key, or
// steps that are not this episode's.
func checkStaged(s sinks.Staged) error {
	e := s.Episode
	for name, v := range map[string]string{"split": e.Split, "repo": e.Repo, "instance_id": e.InstanceID, "run_id": e.RunID} {
		if v == "" {
			return fmt.Errorf("episode %s has no %s", e.EpisodeID, name)
		}
	}
	if !slices.Contains(schemas.Splits, e.Split) {
		return fmt.Errorf("episode %s has split %q, want one of %s", e.EpisodeID, e.Split, strings.Join(schemas.Splits, ", "))
	}
	if int(e.NSteps) != len(s.Steps) {
		return fmt.Errorf("episode %s has %d steps, its n_steps says %d", e.EpisodeID, len(s.Steps), e.NSteps)
	}
	for i, st := range s.Steps {
		if st.EpisodeID != e.EpisodeID || int(st.StepIndex) != i {
			return fmt.Errorf("step %d of episode %s is step %d of %s", i, e.EpisodeID, st.StepIndex, st.EpisodeID)
		}
		if st.Split != e.Split || st.Repo != e.Repo || st.InstanceID != e.InstanceID {
			return fmt.Errorf("step %d of episode %s has another sort key than its episode", i, e.EpisodeID)
		}
	}
	return nil
}

// checkSplits refuses a split group on both sides of a line.
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

// checkSchemas settles the schema that everything is published in. Columns of two
// major versions mean different things, so they do not share a dataset.
func (in *inputs) checkSchemas() error {
	first := in.episodes[0]
	for _, e := range in.episodes {
		if schemas.Major(e.schema) != schemas.Major(first.schema) {
			return fmt.Errorf("%w: %s has schema %s and %s has schema %s, whose columns mean different things: publish each to a place of its own",
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

// place is where the episodes of its run are staged.
func (r stagedRef) place() string { return r.store.URI() + "/" + path.Dir(r.key) }

// version names the content: 16 hex characters over everything that decides
// what is written.
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

// each hands the staged episodes to use in table order, fetched a few ahead.
func (in *inputs) each(ctx context.Context, use func(sinks.Staged) error) error {
	for batch := range slices.Chunk(in.episodes, 4*readers) {
		got := make([]sinks.Staged, len(batch))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(readers)
		for i, ref := range batch {
			g.Go(func() error {
				s, sha, err := fetchStaged(gctx, ref.store, ref.key)
				if err == nil && sha != ref.sha {
					err = fmt.Errorf("staged episode %s changed while it was published: staging must not be edited", ref.key)
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
