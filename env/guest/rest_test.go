package guest

import "testing"

var kept [][]byte

func TestIdleGuestRestsOncePerWork(t *testing.T) {
	var r rester
	r.rest()
	before := r.rests
	r.rest()
	if r.rests != before {
		t.Error("rested again although nothing was done in between")
	}
	for range 4 {
		kept = append(kept, make([]byte, restAfter))
	}
	kept = nil
	if r.rest(); r.rests != before+1 {
		t.Errorf("%d rests after work, want %d", r.rests, before+1)
	}
}
