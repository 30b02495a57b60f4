package guest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// If several calls name a new transfer at once, it is opened once: a second one would leak with
// its descriptor.
func TestTransfersAreOpenedOnce(t *testing.T) {
	ts := &transfers{known: map[uint64]*transfer{}}
	for id := range uint64(maxTransfers) {
		var opened atomic.Int32
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				_, err := ts.open(id, func() (*transfer, error) {
					opened.Add(1)
					for range 100 {
						runtime.Gosched() // so that the other calls come meanwhile
					}
					return &transfer{abort: func() {}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n := opened.Load(); n != 1 {
			t.Fatalf("transfer %d was opened %d times", id, n)
		}
	}
	if _, err := ts.open(maxTransfers, func() (*transfer, error) { return nil, nil }); err == nil {
		t.Errorf("more than %d transfers are open at once", maxTransfers)
	}
}
