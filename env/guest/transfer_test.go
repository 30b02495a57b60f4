package guest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// If several calls with the same new id arrive at once, the transfer is opened once. A second one
// would leak its descriptor.
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
						runtime.Gosched() // let the other calls arrive
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
