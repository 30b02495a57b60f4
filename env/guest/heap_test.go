package guest

import "testing"

var kept [][]byte

func TestIdleGuestReleasesItsHeapOncePerWork(t *testing.T) {
	var r heapReleaser
	r.release()
	before := r.releases
	r.release()
	if r.releases != before {
		t.Error("released again although nothing was done in between")
	}
	for range 4 {
		kept = append(kept, make([]byte, releaseAfter))
	}
	kept = nil
	if r.release(); r.releases != before+1 {
		t.Errorf("%d releases after work, want %d", r.releases, before+1)
	}
}
