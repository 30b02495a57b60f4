package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// readers is the number of objects that are read concurrently.
const readers = 4

// fetchStaged reads and checks one staged episode, and returns it with its SHA-256.
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
		return s, "", fmt.Errorf("%w: %s/%s: %w: delete it and run the same command again", ErrDamaged, store.URI(), key, err)
	}
	return s, schemas.HashBytes(body), nil
}

// checkStaged returns an error for an episode that would break the tables, such as one with an
// incomplete sort key or with steps of another episode.
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
		return fmt.Errorf("episode %s has %d steps, but its n_steps is %d", e.EpisodeID, len(s.Steps), e.NSteps)
	}
	for i, st := range s.Steps {
		if st.EpisodeID != e.EpisodeID || int(st.StepIndex) != i {
			return fmt.Errorf("step %d of episode %s is step %d of %s", i, e.EpisodeID, st.StepIndex, st.EpisodeID)
		}
		if st.Split != e.Split || st.Repo != e.Repo || st.InstanceID != e.InstanceID {
			return fmt.Errorf("step %d of episode %s has a different sort key than its episode", i, e.EpisodeID)
		}
	}
	return nil
}

// textSize estimates the size of an episode's steps in their table, in bytes.
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

func sortKey(e schemas.EpisodeRow) shard.Key {
	return shard.Key{Split: e.Split, Repo: e.Repo, InstanceID: e.InstanceID, EpisodeID: e.EpisodeID}
}
