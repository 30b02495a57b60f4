package guest

import "testing"

var retained [][]byte

func TestHeapIsReleasedOnlyAfterAllocations(t *testing.T) {
	var r heapReleaser
	r.release()
	before := r.releases
	r.release()
	if r.releases != before {
		t.Error("released again without allocations in between")
	}
	for range 4 {
		retained = append(retained, make([]byte, releaseAfter))
	}
	retained = nil
	if r.release(); r.releases != before+1 {
		t.Errorf("%d releases after allocations, want %d", r.releases, before+1)
	}
}
