package engine

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Of several concurrent replacements of the state, one succeeds together with its totals.
// Repeating that one, as after a lost answer, succeeds as well.
func TestOneOfSeveralReplacementsSucceeds(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	if none, err := e.OpenBudget(t.Context(), false); err != nil || none != nil {
		t.Fatalf("OpenBudget of a run without a budget: %v, %v", none, err)
	}
	b, err := e.OpenBudget(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if body, revision, err := b.State(t.Context()); err != nil || revision != 0 || body != nil {
		t.Fatalf("state of a new budget: %q %d %v", body, revision, err)
	}
	totals := map[string][]byte{}
	for i := range 1100 { // two batches
		totals[fmt.Sprint("total", i)] = []byte("0")
	}
	if err := b.PutTotals(t.Context(), totals); err != nil {
		t.Fatal(err)
	}
	revision := uint64(0)
	for round := range 8 {
		var replaced atomic.Int32
		var next atomic.Uint64
		var winner atomic.Value
		var writers sync.WaitGroup
		for writer := range 4 {
			writers.Go(func() {
				body := fmt.Sprint(round, " by ", writer)
				rev, ok, err := b.Replace(t.Context(), []byte(body), revision, map[string][]byte{"total7": []byte(body), "other": []byte(body)})
				if err != nil {
					t.Error(err)
				}
				if ok {
					replaced.Add(1)
					next.Store(rev)
					winner.Store(body)
				}
			})
		}
		writers.Wait()
		body, now, err := b.State(t.Context())
		if err != nil || replaced.Load() != 1 || now != next.Load() || string(body) != winner.Load() {
			t.Fatalf("%d replacements succeeded; state %q with revision %d, %v; the winner wrote %v with revision %d", replaced.Load(), body, now, err, winner.Load(), next.Load())
		}
		for _, name := range []string{"total7", "other"} {
			if total, err := b.Total(t.Context(), name); err != nil || string(total) != string(body) {
				t.Fatalf("total %s is %q, %v, but the state is %q", name, total, err, body)
			}
		}
		if again, ok, err := b.Replace(t.Context(), body, revision, nil); err != nil || !ok || again != now {
			t.Fatalf("repeating the successful replacement: %d %v %v", again, ok, err)
		}
		revision = now
	}
	if total, err := b.Total(t.Context(), "total1099"); err != nil || string(total) != "0" {
		t.Errorf("%q, %v", total, err)
	}
	if _, err := e.JoinBudget(t.Context()); err != nil {
		t.Error(err)
	}
	if held := strings.Join(streamsOf("r1"), " "); !strings.Contains(held, "KV_"+budgetBucket("r1")) {
		t.Errorf("Sweep does not remove the budget, only %s", held)
	}
}
