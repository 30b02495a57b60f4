package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long a test waits for an event that must happen. Only a bug makes a test wait
// so long.
const patience = 3 * time.Minute

// open starts an embedded engine on dir. It stops the engine at the end of the test.
func open(t *testing.T, dir string, change func(*Options)) *Engine {
	t.Helper()
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{RunID: "r1", Lock: lock, MinFree: 1, Reconcile: time.Hour}
	if change != nil {
		change(&opt)
	}
	e, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), lock.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func jobs(n int) []Job {
	var out []Job
	for i := range n {
		out = append(out, Job{ID: fmt.Sprintf("job%05d", i), Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	return out
}

func enqueue(t *testing.T, e *Engine, n int) {
	t.Helper()
	if _, err := e.Enqueue(t.Context(), jobs(n)); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, e *Engine) *Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	l, err := e.Next(ctx, "w")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func record(t *testing.T, e *Engine, id string) Record {
	t.Helper()
	entry, ok, err := e.Get(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("record of %s: ok=%v err=%v", id, ok, err)
	}
	return entry.Record
}

func TestSettingsInForce(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	cfg := e.srv.JetStreamConfig()
	if !cfg.SyncAlways || cfg.SyncInterval == 0 {
		t.Errorf("writes are not synchronous: %+v", cfg)
	}
	if e.srv.Addr() != nil {
		t.Errorf("the embedded server listens on %v", e.srv.Addr())
	}
	info, err := e.workers.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := info.Config
	if got.AckWait != time.Minute || got.MaxDeliver != 4 || len(got.BackOff) != 0 || got.AckPolicy != jetstream.AckExplicitPolicy {
		t.Errorf("consumer settings: %+v", got)
	}
}

func TestJobsAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	added, err := e.Enqueue(t.Context(), jobs(2500)) // three batches
	if err != nil || added != 2500 {
		t.Fatalf("added %d, %v", added, err)
	}
	if again, err := e.Enqueue(t.Context(), jobs(2501)); err != nil || again != 1 {
		t.Fatalf("second enqueue added %d, %v; want 1", again, err)
	}
	seen := map[string]bool{}
	for range 30 {
		l := next(t, e)
		if seen[l.ID] || l.Delivery != 1 {
			t.Fatalf("job %s handed out again (delivery %d)", l.ID, l.Delivery)
		}
		seen[l.ID] = true
		if err := errors.Join(l.Done(t.Context(), "h", nil), l.Ack(t.Context())); err != nil {
			t.Fatal(err)
		}
		if r := record(t, e, l.ID); r.State != Done || r.Hash != "h" {
			t.Errorf("record after Done: %+v", r)
		}
	}
	info, err := e.tasks.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs != 2501-30 {
		t.Errorf("%d messages in the queue, want %d", info.State.Msgs, 2501-30)
	}
}

func TestStaleOwnerIsRefused(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), func(o *Options) {
		o.AckWait, o.Heartbeat = 400*time.Millisecond, time.Hour // a worker that never renews its lease
	})
	enqueue(t, e, 1)
	old := next(t, e)
	oldLog, _, err := e.OpenLog(t.Context(), old.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := oldLog.Append(t.Context(), "reply", []byte("first")); err != nil {
		t.Fatal(err)
	}
	current := next(t, e)
	if current.ID != old.ID || current.Delivery != 2 {
		t.Fatalf("second claim: %s delivery %d", current.ID, current.Delivery)
	}
	_, entries, err := e.OpenLog(t.Context(), current.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := []LogEntry{{"reply", []byte("first")}}; !cmp.Equal(entries, want) {
		t.Error(cmp.Diff(entries, want))
	}
	if err := oldLog.Append(t.Context(), "reply", []byte("late")); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("append of a stale owner: %v", err)
	}
	if err := old.Done(t.Context(), "wrong", nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Done of a stale owner: %v", err)
	}
	if err := current.Done(t.Context(), "right", nil); err != nil {
		t.Fatal(err)
	}
	if r := record(t, e, current.ID); r.Hash != "right" || r.Failures != 1 {
		t.Errorf("record: %+v", r)
	}
}

func TestHeartbeatKeepsTheLeaseAndNoticesItsLoss(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), func(o *Options) { o.Heartbeat = 50 * time.Millisecond })
	enqueue(t, e, 1)
	l := next(t, e)
	for last, beats, start := record(t, e, l.ID).LeaseEnd, 0, time.Now(); beats < 3; {
		if r := record(t, e, l.ID); r.LeaseEnd.After(last) {
			last, beats = r.LeaseEnd, beats+1
		} else if time.Since(start) > patience {
			t.Fatal("the lease is not renewed")
		}
	}
	if _, err := e.js.Publish(t.Context(), e.taskSubject(l.ID), nil); err != nil { // as if the queue had missed the renewals
		t.Fatal(err)
	}
	msg, err := e.pull(t.Context())
	for msg == nil && err == nil {
		msg, err = e.pull(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if other, err := e.claim(t.Context(), msg, "thief"); other != nil || err != nil {
		t.Fatalf("the job was handed out although its owner renews the lease, %v", err)
	}
	entry, _, err := e.Get(t.Context(), l.ID)
	if err != nil {
		t.Fatal(err)
	}
	for { // the owner renews its lease at the same time
		stolen := entry.Record
		stolen.Owner = "thief"
		if err = e.swap(t.Context(), &entry, stolen); !errors.Is(err, ErrLeaseLost) {
			break
		}
		if entry, _, err = e.Get(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Context().Done():
	case <-time.After(patience):
		t.Fatal("the owner did not notice that it lost the lease")
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLeaseLost) {
		t.Errorf("cause %v", cause)
	}
	if err := l.Release(t.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("release after loss: %v", err)
	}
}

func TestFailuresEndInADeadJobThatCanBeRevived(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := open(t, dir, nil)
	enqueue(t, e, 1)
	for i := 1; i <= 4; i++ {
		l := next(t, e)
		if l.Delivery != i {
			t.Fatalf("delivery %d, want %d", l.Delivery, i)
		}
		r, err := l.Fail(t.Context(), "rollout", "sandbox", fmt.Sprintf("no %d", i), time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]State{true: Dead, false: Queued}[i == 4]; r.State != want {
			t.Fatalf("after failure %d: %s, want %s", i, r.State, want)
		}
	}
	r := record(t, e, "job00000")
	if r.Class != "sandbox" || r.Cause != "no 4" || r.FirstAt.IsZero() || r.LastAt.IsZero() {
		t.Errorf("dead letter: %+v", r)
	}
	if n, err := e.Enqueue(t.Context(), jobs(1)); n != 0 || err != nil {
		t.Errorf("a dead job was enqueued again: %d %v", n, err)
	}
	if n, err := e.Revive(t.Context(), []string{"job00000", "unknown"}); n != 1 || err != nil {
		t.Fatalf("revived %d, %v", n, err)
	}
	l := next(t, e)
	if l.Delivery != 5 {
		t.Errorf("delivery after revival %d", l.Delivery)
	}
	if err := l.Done(t.Context(), "h", nil); err != nil {
		t.Error(err)
	}
}

func TestReleaseCountsNoFailure(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	enqueue(t, e, 1)
	for range 4 { // as often as the queue will deliver
		if err := next(t, e).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	entry, _, err := e.Get(t.Context(), "job00000")
	if err != nil {
		t.Fatal(err)
	}
	if r := entry.Record; r.State != Queued || r.Failures != 0 || r.Tries != 0 {
		t.Fatalf("record: %+v", r)
	}
	overdue := entry.Record // due for longer than AckWait
	overdue.Due = overdue.Due.Add(-time.Hour)
	if err := e.swap(t.Context(), &entry, overdue); err != nil {
		t.Fatal(err)
	}
	// The message has used up its deliveries. The reconciler notices that and publishes a new one.
	if err := e.reconcile(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := next(t, e).Done(t.Context(), "h", nil); err != nil {
		t.Error(err)
	}
}

func TestReconcilerRepairs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Run("message deleted by hand", func(t *testing.T) {
		e := open(t, t.TempDir(), nil)
		enqueue(t, e, 1)
		if err := e.tasks.Purge(ctx); err != nil {
			t.Fatal(err)
		}
		if err := e.reconcile(ctx, false); err != nil {
			t.Fatal(err)
		}
		next(t, e)
	})
	t.Run("consumer deleted", func(t *testing.T) {
		e := open(t, t.TempDir(), nil)
		enqueue(t, e, 1)
		if err := e.tasks.DeleteConsumer(ctx, "workers"); err != nil {
			t.Fatal(err)
		}
		if err := e.reconcile(ctx, false); err != nil {
			t.Fatal(err)
		}
		next(t, e)
	})
	t.Run("message and log of a finished job", func(t *testing.T) {
		e := open(t, t.TempDir(), nil)
		enqueue(t, e, 1)
		l := next(t, e)
		log, _, err := e.OpenLog(ctx, l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.Append(ctx, "x", nil), l.Done(ctx, "h", nil)); err != nil {
			t.Fatal(err)
		}
		if err := e.reconcile(ctx, false); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]jetstream.Stream{"jobs": e.tasks, "steps": e.steps} {
			if info, err := s.Info(ctx); err != nil || info.State.Msgs != 0 {
				t.Errorf("%s: %d messages left, %v", name, info.State.Msgs, err)
			}
		}
	})
	t.Run("owner silent and message gone", func(t *testing.T) {
		e := open(t, t.TempDir(), nil)
		enqueue(t, e, 1)
		entry, _, err := e.Get(ctx, "job00000")
		if err != nil {
			t.Fatal(err)
		}
		r := entry.Record
		r.State, r.Owner, r.LeaseEnd = Running, "elsewhere", time.Now().Add(-time.Hour)
		if err := errors.Join(e.swap(ctx, &entry, r), e.tasks.Purge(ctx), e.reconcile(ctx, false)); err != nil {
			t.Fatal(err)
		}
		if got := record(t, e, "job00000"); got.Failures != 1 {
			t.Errorf("record: %+v", got)
		}
		next(t, e)
	})
}

func TestDiskFullStopsClaiming(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := open(t, dir, nil)
	enqueue(t, e, 1)
	e.opt.MinFree = 1 << 62
	_, err := e.Next(t.Context(), "w")
	full, ok := errors.AsType[*DiskFullError](err)
	if !ok || full.ExitCode() != 2 || !strings.Contains(full.Error(), dir) {
		t.Fatalf("%v", err)
	}
}

func TestUnresponsiveServerGivesStuckError(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	e.timeout, e.patience = 20*time.Millisecond, 0
	e.srv.Shutdown()
	_, _, err := e.Get(t.Context(), "x")
	stuck, ok := errors.AsType[*StuckError](err)
	if !ok || stuck.Hint() == "" {
		t.Fatalf("%v", err)
	}
}
