package shard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// writeEpisodes writes one episode of five 1 kB steps per key.
func writeEpisodes(t *testing.T, maxBytes int64, keys []shard.Key) []shard.Shard {
	t.Helper()
	w := shard.New[schemas.StepRow](shard.Config{Dir: t.TempDir(), Table: arrowrec.Steps, MaxBytes: maxBytes})
	defer w.Abort()
	for _, k := range keys {
		rows := make([]schemas.StepRow, 5)
		for i := range rows {
			rows[i] = schemas.StepRow{Split: k.Split, Repo: k.Repo, EpisodeID: k.EpisodeID, StepIndex: int32(i), Message: strings.Repeat("m", 1000)}
		}
		if err := w.Append(k, rows); err != nil {
			t.Fatal(err)
		}
	}
	shards, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

func makeKeys(split string, repos, each int) []shard.Key {
	var out []shard.Key
	for r := range repos {
		for e := range each {
			out = append(out, shard.Key{Split: split, Repo: fmt.Sprintf("r%03d", r), InstanceID: "i", EpisodeID: fmt.Sprintf("%03d-%03d", r, e)})
		}
	}
	return out
}

func TestShardsHoldWholeEpisodesInOrder(t *testing.T) {
	keys := append(makeKeys("test", 3, 10), makeKeys("train", 3, 10)...)
	shards := writeEpisodes(t, 40_000, keys)
	var got []string
	for _, s := range shards {
		if s.Split != s.MinKey[0] || s.Split != s.MaxKey[0] {
			t.Errorf("shard %v..%v crosses splits", s.MinKey, s.MaxKey)
		}
		if s.Uncompressed > 40_000+6_000 {
			t.Errorf("shard of %d bytes", s.Uncompressed)
		}
		steps := map[string]int{}
		for row, err := range formats.ReadSteps(s.Path) {
			if err != nil {
				t.Fatal(err)
			}
			if steps[row.EpisodeID]++; steps[row.EpisodeID] == 1 {
				got = append(got, row.Split+row.EpisodeID)
			}
		}
		for id, n := range steps {
			if n != 5 {
				t.Errorf("episode %s has %d of 5 steps in its shard", id, n)
			}
		}
	}
	var want []string
	for _, k := range keys {
		want = append(want, k.Split+k.EpisodeID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestANewRepositoryChangesOnlyItsNeighbourhood(t *testing.T) {
	hashes := func(shards []shard.Shard) []string {
		var out []string
		for _, s := range shards {
			out = append(out, s.SHA256)
		}
		return out
	}
	keys := makeKeys("train", 60, 4)
	before := hashes(writeEpisodes(t, 200_000, keys))
	at := 4 * 20
	added := slices.Insert(slices.Clone(keys), at, shard.Key{Split: "train", Repo: keys[at-1].Repo + "x", InstanceID: "i", EpisodeID: "new"})
	after := hashes(writeEpisodes(t, 200_000, added))
	changed := 0
	for _, h := range before {
		if !slices.Contains(after, h) {
			changed++
		}
	}
	if len(before) < 6 || changed == 0 || changed > 2 {
		t.Errorf("%d of %d shards changed, want 1 or 2", changed, len(before))
	}
}

func TestNoRowsIsAnError(t *testing.T) {
	w := shard.New[schemas.StepRow](shard.Config{Dir: t.TempDir(), Table: arrowrec.Steps})
	if _, err := w.Close(); err == nil {
		t.Error("an empty table was written")
	}
}
