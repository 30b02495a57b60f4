package engine

import (
	"context"
	"errors"
	"testing"
)

// If ctx is canceled while a job is being claimed, the job returns to the queue at once, so that
// other workers need not wait for its lease to expire.
func TestCanceledClaimReturnsTheJob(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	enqueue(t, e, 1)
	msg, err := e.pull(t.Context())
	for ; err == nil && msg == nil; msg, err = e.pull(t.Context()) {
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := e.accept(ctx, msg, "w"); l != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("%+v, %v", l, err)
	}
	if r := record(t, e, "job00000"); r.State != Queued || r.Owner != "" || r.Tries != 0 {
		t.Errorf("record of the returned job: %+v", r)
	}
	if l := next(t, e); l.Delivery != 2 {
		t.Errorf("delivery %d", l.Delivery)
	}
}

func TestWatchSeesChanges(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	enqueue(t, e, 2)
	go func() {
		for range 2 {
			if l, err := e.Next(t.Context(), "w"); err == nil {
				_ = l.Done(t.Context(), "h", nil)
			}
		}
	}()
	done := map[string]bool{}
	err := e.Watch(t.Context(), func(x Entry) bool {
		if x.State == Done {
			done[x.ID] = true
		}
		return len(done) < 2
	})
	if err != nil {
		t.Fatal(err)
	}
}
