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
