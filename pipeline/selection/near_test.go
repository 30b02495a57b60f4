package selection_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

// signatureWith returns a signature. All signatures with the same number same agree in their
// first positions, and in no others if other differs.
func signatureWith(same int, other uint32) *string {
	raw := make([]byte, 0, 512)
	for i := range 128 {
		v := uint32(7)
		if i >= same {
			v = other
		}
		raw = binary.LittleEndian.AppendUint32(raw, v)
	}
	return new(base64.StdEncoding.EncodeToString(raw))
}

// At 0.9, 116 of 128 positions must be equal (115.2, rounded up). An episode without a readable signature is
// not similar to any other.
func TestNearDuplicates(t *testing.T) {
	rows := episodes(6)
	for i, s := range []*string{signatureWith(128, 0), signatureWith(116, 1), signatureWith(115, 2), nil, new("short"), signatureWith(0, 3)} {
		rows[i].MinhashB64 = s
		rows[i].Split, rows[i].Repo, rows[i].InstanceID = "train", "r", fmt.Sprint(i) // the order of the table
	}
	got := apply(t, load(t, "name: x\nnear: 0.9\n"), rows)
	wantSums(t, 6, got)
	var kept []int
	for i, e := range rows {
		if slices.Contains(got.Kept, e.EpisodeID) {
			kept = append(kept, i)
		}
	}
	if !slices.Equal(kept, []int{0, 2, 3, 4, 5}) || got.Info.Near != 0.9 {
		t.Errorf("kept %v, near %g; want all but the second", kept, got.Info.Near)
	}
	got = apply(t, load(t, "name: x\nreport_near: 0.9\n"), rows)
	want := schemas.FunnelStep{Predicate: "near", Expr: "MinHash similarity to every earlier episode below 0.9", In: 6, Out: 3, Unknown: 2}
	if len(got.Kept) != 6 || len(got.Info.Reports) != 1 || got.Info.Reports[0] != want {
		t.Errorf("reports = %+v, want %+v", got.Info.Reports, want)
	}
}

// At any threshold, the bands find all pairs that are equal in enough positions.
func TestNearFindsAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var rows []schemas.EpisodeRow
	for i, e := range episodes(60) {
		raw := make([]byte, 0, 512)
		for range 128 { // few different values, so that many positions are equal by chance
			v := uint32(1)
			if rng.IntN(10) < i%10 {
				v = rng.Uint32N(3)
			}
			raw = binary.LittleEndian.AppendUint32(raw, v)
		}
		e.MinhashB64 = new(base64.StdEncoding.EncodeToString(raw))
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b schemas.EpisodeRow) int {
		return slices.Compare([]string{a.Split, a.Repo, a.InstanceID, a.EpisodeID}, []string{b.Split, b.Repo, b.InstanceID, b.EpisodeID})
	})
	for _, threshold := range []float64{0.05, 0.3, 0.5, 0.75, 0.9, 0.99, 1} {
		var want []string
		var kept []schemas.EpisodeRow
		for _, e := range rows {
			if !slices.ContainsFunc(kept, func(k schemas.EpisodeRow) bool {
				a, _ := overlap.ParseSignature(*k.MinhashB64)
				b, _ := overlap.ParseSignature(*e.MinhashB64)
				return a.Similar(b) >= threshold
			}) {
				kept = append(kept, e)
				want = append(want, e.EpisodeID)
			}
		}
		if got := apply(t, load(t, fmt.Sprintf("name: x\nnear: %g\n", threshold)), rows); !slices.Equal(got.Kept, want) {
			t.Errorf("at %g: %d kept, comparing all pairs keeps %d", threshold, len(got.Kept), len(want))
		}
	}
}

// If the column minhash_b64 is null, the signature is computed from the steps.
func TestNearComputesMissingSignatures(t *testing.T) {
	row := episodes(1)[0]
	steps := withCalls("view")
	steps[1].Message = "these are more than five words about nothing at all"
	row.MinhashB64 = nil
	r := load(t, "name: x\nnear: 0.9\n")
	twin := row
	twin.EpisodeID = "f" + row.EpisodeID[1:]
	got, err := r.Apply(t.Context(), joined(one(row, steps), one(twin, steps)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kept) != 1 || *got.Rows[1].FirstReason != "dedup:near" {
		t.Errorf("kept %v, want only the first of two equal episodes", got.Kept)
	}
}

func joined(sources ...selection.Source) selection.Source {
	return func(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
		return func(yield func(selection.Episode, error) bool) {
			for _, s := range sources {
				for e, err := range s(ctx, steps) {
					if !yield(e, err) {
						return
					}
				}
			}
		}
	}
}

var _ selection.Selector = (*selection.Recipe)(nil)
