package rundir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
)

// The log tells what happened in all invocations, without secrets.
func TestLogTellsWhatHappened(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	const secret = "correct-horse-battery"
	h.Config.Normalise.Secrets = redact.NewKnown([]string{secret})
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) {
		return schemas.Verdict{}, errors.New("no sandbox for " + secret)
	}
	rep := h.MustRun(t)
	if want := filepath.Join(h.Dir, "run.log"); rep.Log != want {
		t.Errorf("the report names %q", rep.Log)
	}
	var text strings.Builder
	if err := rep.WriteText(&text); err != nil || !strings.Contains(text.String(), "  log       "+rep.Log+" says what happened\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
	h.OnVerify, h.Config.Retry = nil, []string{"infra"}
	rep = h.MustRun(t)
	raw, err := os.ReadFile(rep.Log)
	if err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		`msg="run started"`: 2, "tool=submit": 1, `msg="episode failed"`: 4, `outcome=infra`: 1,
		`outcome=resolved`: 1, "verdict=COMPLETE": 1, `stage=grade error="verifying: no sandbox for [`: 4, secret: 0,
	} {
		if n := strings.Count(string(raw), want); n != times {
			t.Errorf("%q is in the log %d times, want %d:\n%s", want, n, times, raw)
		}
	}
}

// The size of the log is bounded.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := rundir.Open(rundir.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	log, err := d.OpenLog(func(s string) string { return strings.ReplaceAll(s, "secret", "[removed]") })
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	for i := range 20 {
		log.Debug(fmt.Sprintf("%d secret", i), "text", long)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var all string
	for _, name := range []string{"run.log.1", "run.log"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(raw) > 8<<20 {
			t.Errorf("%s has %d bytes, %v", name, len(raw), err)
		}
		all += string(raw)
	}
	if !strings.Contains(all, "19 [removed]") || !strings.Contains(all, "12 [removed]") || strings.Contains(all, "secret") {
		t.Error("the log lacks its last records or contains a secret")
	}
}
