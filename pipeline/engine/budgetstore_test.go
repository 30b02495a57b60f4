package engine

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Of several concurrent replacements of the state one succeeds, together with its totals.
// Repeating it, because its answer was lost, succeeds as well.
func TestOneOfSeveralReplacementsSucceeds(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	if none, err := e.OpenBudget(t.Context(), false); err != nil || none != nil {
		t.Fatalf("before there is one: %v, %v", none, err)
	}
	b, err := e.OpenBudget(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if body, revision, err := b.State(t.Context()); err != nil || revision != 0 || body != nil {
		t.Fatalf("an empty state: %q %d %v", body, revision, err)
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
		var won atomic.Value
		var all sync.WaitGroup
		for who := range 4 {
			all.Go(func() {
				body := fmt.Sprint(round, " by ", who)
				rev, ok, err := b.Replace(t.Context(), []byte(body), revision, map[string][]byte{"total7": []byte(body), "other": []byte(body)})
				if err != nil {
					t.Error(err)
				}
				if ok {
					replaced.Add(1)
					next.Store(rev)
					won.Store(body)
				}
			})
		}
		all.Wait()
		body, now, err := b.State(t.Context())
		if err != nil || replaced.Load() != 1 || now != next.Load() || string(body) != won.Load() {
			t.Fatalf("%d replaced it; state %q of %d, %v; %v won with %d", replaced.Load(), body, now, err, won.Load(), next.Load())
		}
		for _, name := range []string{"total7", "other"} {
			if total, err := b.Total(t.Context(), name); err != nil || string(total) != string(body) {
				t.Fatalf("%s: %q, %v beside the state %q", name, total, err, body)
			}
		}
		if again, ok, err := b.Replace(t.Context(), body, revision, nil); err != nil || !ok || again != now {
			t.Fatalf("the same once more: %d %v %v", again, ok, err)
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
		t.Errorf("a run that is removed leaves its budget: %s", held)
	}
}
