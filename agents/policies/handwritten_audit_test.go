package policies_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
)

// comparison returns what compares the values of an episode with the fixed program.
func comparison(t *testing.T, pairs trace.Pairs, tree env.Tree, task schemas.Task) func(*audit.Record) *audit.Evidence {
	return func(r *audit.Record) *audit.Evidence {
		test := task.Tests.FailToPass[0]
		for _, id := range task.Tests.FailToPass {
			if len(r.Stops) > 0 && strings.Contains(r.Stops[0].Command, id) {
				test = id
			}
		}
		pair, err := pairs.Trace(t.Context(), task, tree, test)
		if err != nil {
			t.Fatal(err)
		}
		evidence, err := audit.Compare(r, pair, func(fixed bool, queries []schemas.TraceQuery) ([]schemas.TraceReply, error) {
			return pairs.Evaluate(t.Context(), task, tree, fixed, test, queries)
		})
		if err != nil {
			t.Fatal(err)
		}
		return evidence
	}
}

// checkAudit checks that the auditor finds the values that differ in the fixed program, and the padding. checkFixed
// finds the values in another way: it makes the same calls in the fixed program.
func checkAudit(t *testing.T, tree env.Tree, task schemas.Task, name string, values []value, steps []schemas.Step) {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pairs := trace.Pairs{Runner: verify.New(verify.Config{Driver: envtest.Driver(t, "bubblewrap"), Store: store, Timeout: 5 * time.Minute})}
	staged, err := normalise.Episode(&schemas.Episode{Task: task, Steps: steps}, normalise.Config{Compare: comparison(t, pairs, tree, task)})
	if err != nil {
		t.Fatal(err)
	}
	e := staged.Episode
	want := strings.HasPrefix(name, "good-") || name == "bad-padding-taskboard" || name == "bad-false-rulefile"
	if e.GoldEvidenceDiffers == nil || *e.GoldEvidenceDiffers != want || schemas.Value(e.GoldUnknownInspections) > 0 {
		t.Errorf("gold_evidence_differs is %v, want %v; unknown: %v", schemas.Value(e.GoldEvidenceDiffers), want, schemas.Value(e.GoldUnknownInspections))
	}
	if strings.HasPrefix(name, "good-") && !schemas.Value(e.NamesCause) {
		t.Error("names_cause is not true")
	}
	for _, v := range values {
		n := staged.Steps[v.turn-1].GoldNDiffering
		if n == nil || *n > 0 != (v.buggy != v.fixed) {
			t.Errorf("call %d shows %v differing values, but the fixed program shows %q instead of %q", v.turn, schemas.Value(n), v.fixed, v.buggy)
		}
	}
	var padding []int
	for i, row := range staged.Steps {
		if schemas.Value(row.IsPadding) {
			padding = append(padding, i+1)
		}
	}
	var pads []int
	if name == "bad-padding-taskboard" {
		pads = []int{5, 6, 10, 11, 13, 14, 15, 16, 17}
	}
	if !slices.Equal(padding, pads) {
		t.Errorf("padding: calls %v, want %v", padding, pads)
	}
}
