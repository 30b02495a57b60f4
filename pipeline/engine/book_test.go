package engine

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Of several who turn a page at once one does, with its leaves, and a try whose
// answer was lost is known again.
func TestThePageOfABookIsTurnedByOne(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	if none, err := e.OpenBook(t.Context(), false); err != nil || none != nil {
		t.Fatalf("before there is one: %v, %v", none, err)
	}
	b, err := e.OpenBook(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if body, revision, err := b.Page(t.Context()); err != nil || revision != 0 || body != nil {
		t.Fatalf("an empty page: %q %d %v", body, revision, err)
	}
	leaves := map[string][]byte{}
	for i := range 1100 { // two batches
		leaves[fmt.Sprint("leaf", i)] = []byte("0")
	}
	if err := b.Put(t.Context(), leaves); err != nil {
		t.Fatal(err)
	}
	revision := uint64(0)
	for round := range 8 {
		var turned atomic.Int32
		var next atomic.Uint64
		var won atomic.Value
		var all sync.WaitGroup
		for who := range 4 {
			all.Go(func() {
				body := fmt.Sprint(round, " by ", who)
				rev, ok, err := b.Turn(t.Context(), []byte(body), revision, map[string][]byte{"leaf7": []byte(body), "other": []byte(body)})
				if err != nil {
					t.Error(err)
				}
				if ok {
					turned.Add(1)
					next.Store(rev)
					won.Store(body)
				}
			})
		}
		all.Wait()
		body, now, err := b.Page(t.Context())
		if err != nil || turned.Load() != 1 || now != next.Load() || string(body) != won.Load() {
			t.Fatalf("%d turned it; page %q of %d, %v; %v won with %d", turned.Load(), body, now, err, won.Load(), next.Load())
		}
		for _, name := range []string{"leaf7", "other"} {
			if leaf, err := b.Leaf(t.Context(), name); err != nil || string(leaf) != string(body) {
				t.Fatalf("%s: %q, %v beside the page %q", name, leaf, err, body)
			}
		}
		if again, ok, err := b.Turn(t.Context(), body, revision, nil); err != nil || !ok || again != now {
			t.Fatalf("the same once more: %d %v %v", again, ok, err)
		}
		revision = now
	}
	if leaf, err := b.Leaf(t.Context(), "leaf1099"); err != nil || string(leaf) != "0" {
		t.Errorf("%q, %v", leaf, err)
	}
	if _, err := e.JoinBook(t.Context()); err != nil {
		t.Error(err)
	}
	if held := strings.Join(streamsOf("r1"), " "); !strings.Contains(held, "KV_"+bookOf("r1")) {
		t.Errorf("a run that is removed leaves its book: %s", held)
	}
}
