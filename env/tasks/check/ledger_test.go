package check

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLedgerContinuesAfterAnIncompleteLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "checks.jsonl")
	l, err := OpenLedger(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Add(Report{TaskID: "a", Status: Sound, Runs: 5}), l.Add(Report{TaskID: "b", Status: Flaky, Runs: 2})); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(name); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"task_id":"c","status":"so`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if l, err = OpenLedger(name); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		runs int
		want bool
	}{{"a", 5, true}, {"a", 6, false}, {"b", 20, true}, {"c", 1, false}} {
		if _, ok := l.Known(c.id, c.runs); ok != c.want {
			t.Errorf("%s with %d runs is known: %v", c.id, c.runs, ok)
		}
	}
	if err := errors.Join(l.Add(Report{TaskID: "c", Status: Sound, Runs: 5}), l.Close()); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenLedger(name); err != nil {
		t.Fatalf("after an incomplete line: %v", err)
	}
	if _, ok := l.Known("c", 5); !ok {
		t.Error("the report that was added after an incomplete line is lost")
	}
	_ = l.Close()
}
