package engine

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStepLogKeepsOrderAndSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := open(t, dir, nil)
	big := bytes.Repeat([]byte("0123456789"), 200_000) // four parts
	log, _, err := e.OpenLog(t.Context(), "ep1")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := e.OpenLog(t.Context(), "ep2")
	if err != nil {
		t.Fatal(err)
	}
	want := []LogEntry{{"reply", []byte("a")}, {"step", big}, {"empty", nil}, {"reply", []byte("b")}}
	for _, w := range want {
		if err := errors.Join(log.Append(t.Context(), w.Kind, w.Data), other.Append(t.Context(), "noise", []byte("z"))); err != nil {
			t.Fatal(err)
		}
	}
	_, got, err := e.OpenLog(t.Context(), "ep1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := e.PurgeLog(t.Context(), "ep1"); err != nil {
		t.Fatal(err)
	}
	if _, got, err := e.OpenLog(t.Context(), "ep1"); err != nil || len(got) != 0 {
		t.Errorf("after purge: %d entries, %v", len(got), err)
	}
	if _, got, err := e.OpenLog(t.Context(), "ep2"); err != nil || len(got) != len(want) {
		t.Errorf("the other job's log: %d entries, %v", len(got), err)
	}
}

// A slow server may store an entry and answer too late. The next try finds the entry instead of
// reporting that another worker owns the job.
func TestAppendAfterALostAnswer(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	log, _, err := e.OpenLog(t.Context(), "ep")
	if err != nil {
		t.Fatal(err)
	}
	first := *log // its Append gets an answer; log does not know of it
	if err := first.Append(t.Context(), "reply", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"1", "2"} {
		if err := log.Append(t.Context(), "reply", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	_, got, err := e.OpenLog(t.Context(), "ep")
	if want := []LogEntry{{"reply", []byte("1")}, {"reply", []byte("2")}}; err != nil || !cmp.Equal(got, want) {
		t.Error(err, cmp.Diff(want, got))
	}
	if err := log.Append(t.Context(), "reply", []byte("3")); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("append after another worker opened the log: %v", err)
	}
}

func TestTornEntryIsSkipped(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	log, _, err := e.OpenLog(t.Context(), "ep")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), "whole", []byte("1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Append(ctx, "never", make([]byte, maxPart*2)); err == nil {
		t.Fatal("append with a dead context succeeded")
	}
	msg := tornPart(e, "ep")
	if _, err := e.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	reopened, got, err := e.OpenLog(t.Context(), "ep")
	if err != nil {
		t.Fatal(err)
	}
	if err := reopened.Append(t.Context(), "after", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]LogEntry{{"whole", []byte("1")}}, got); diff != "" {
		t.Error(diff)
	}
}
