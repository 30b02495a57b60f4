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
func writeEpisodes(t *testing.T, maxBytes int64, buckets shard.Buckets, keys []shard.Key) []shard.Shard {
	t.Helper()
	w := shard.New[schemas.StepRow](shard.Config{
		Dir: t.TempDir(), Table: arrowrec.Steps, MaxBytes: maxBytes, Buckets: buckets,
	})
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
	shards := writeEpisodes(t, 40_000, -1, keys)
	var got []string
	for _, s := range shards {
		if s.Split != s.MinKey[0] || s.Split != s.MaxKey[0] {
			t.Errorf("shard %v..%v crosses splits", s.MinKey, s.MaxKey)
		}
		if s.Uncompressed > 40_000+6_000 {
			t.Errorf("shard of %d bytes", s.Uncompressed)
		}
		steps := map[string]int{}
		for row, err := range formats.Read[schemas.StepRow](s.Path, arrowrec.Steps) {
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

// A new repository at any place changes only the shards of one bucket, or splits one
// shard.
func TestANewRepositoryChangesOnlyItsBucket(t *testing.T) {
	hashes := func(shards []shard.Shard) []string {
		var out []string
		for _, s := range shards {
			out = append(out, s.SHA256)
		}
		return out
	}
	keys := makeKeys("train", 60, 4)
	buckets := shard.BucketsFor(60, 60*4*5_200, 200_000)
	before := hashes(writeEpisodes(t, 10_000_000, buckets, keys))
	if len(before) < 6 {
		t.Fatalf("only %d shards, which are too few for this test", len(before))
	}
	for at := 0; at <= len(keys); at += 60 {
		near := "r"
		if at > 0 {
			near = keys[at-1].Repo
		}
		added := slices.Insert(slices.Clone(keys), at, shard.Key{Split: "train", Repo: near + "-new", InstanceID: "i", EpisodeID: "new"})
		after := hashes(writeEpisodes(t, 10_000_000, buckets, added))
		changed := 0
		for _, h := range before {
			if !slices.Contains(after, h) {
				changed++
			}
		}
		if changed > 1 {
			t.Errorf("after %s: %d of %d shards changed, want at most 1", near, changed, len(before))
		}
	}
}

func TestBucketsHoldHalfAShard(t *testing.T) {
	for _, c := range []struct {
		repos      int
		size, most int64
		want       shard.Buckets
	}{
		{1, 1 << 40, 1 << 20, -1}, {1000, 1 << 10, 1 << 20, -1}, {1000, 1 << 30, 1 << 29, 8}, {4, 1 << 30, 1 << 20, 0},
	} {
		if got := shard.BucketsFor(c.repos, c.size, c.most); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestNoRowsIsAnError(t *testing.T) {
	w := shard.New[schemas.StepRow](shard.Config{Dir: t.TempDir(), Table: arrowrec.Steps})
	if _, err := w.Close(); err == nil {
		t.Error("an empty table was written")
	}
}
