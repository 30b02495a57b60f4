package chaos

import (
	"maps"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// The proxy's faults strike at counted creations, and the store client survives them. The
// fault StoreTorn kills a process, and is postponed until there is one.
func TestProxyStrikesCountedCreations(t *testing.T) {
	killed := 0
	p, err := newProxy(sinktest.Fake(t, nil), []storeFault{{StoreError, 1}, {StoreLost, 2}, {StoreTorn, 4}, {StoreSilence, 5}}, func(client string) (bool, error) {
		killed++
		return client != "" && killed > 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	store, err := stores.Open(t.Context(), "s3://traces/p", stores.S3Config{Endpoint: p.URL, Silence: time.Second, MaxBackoff: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if err := store.Create(t.Context(), key, []byte("the body of "+key)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got, err := store.Get(t.Context(), key); err != nil || string(got) != "the body of "+key {
			t.Errorf("%s holds %q, %v", key, got, err)
		}
	}
	struck := map[Kind]int{}
	if err := p.addResults(struck); err != nil || !maps.Equal(struck, map[Kind]int{StoreError: 1, StoreLost: 1, StoreTorn: 1, StoreSilence: 1}) || killed != 2 {
		t.Errorf("struck %v, %d killed, %v", struck, killed, err)
	}
}
