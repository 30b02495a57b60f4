package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/schemas"
)

// A dead letter contains the stage in which its job failed and the cost of the job.
func TestDeadLettersContainStageAndCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inject func(h *harness)
		want   schemas.DeadLetterRow
	}{
		"environment": {
			func(h *harness) {
				h.OnReset = func(context.Context, schemas.Job) error { return errors.New("no sandbox") }
			},
			schemas.DeadLetterRow{Stage: "rollout", State: "failed", ErrorClass: new("env_error"), CostUSD: new(0.0)},
		},
		"verdict": {
			func(h *harness) {
				h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, errors.New("no sandbox") }
			},
			schemas.DeadLetterRow{Stage: "grade", State: "failed", ErrorClass: new("infra"), CostUSD: new(turns * callCost)},
		},
		"rows": {
			func(h *harness) {
				h.OnVerify = func(schemas.Task) (schemas.Verdict, error) {
					return schemas.Verdict{Status: schemas.VerifyNotRun, Method: "AKIA" + "IOSFODNN7EXAMPLQ"}, nil
				}
			},
			schemas.DeadLetterRow{Stage: "normalise", State: "filtered", ErrorClass: new("secret_found"), CostUSD: new(turns * callCost)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
			c.inject(h)
			h.MustRun(t)
			line, err := os.ReadFile(filepath.Join(h.Dir, "dead-letters.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var got schemas.DeadLetterRow
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			got = schemas.DeadLetterRow{Stage: got.Stage, State: got.State, ErrorClass: got.ErrorClass, CostUSD: got.CostUSD}
			if diff := cmp.Diff(c.want, got, pipelinetest.Cents); diff != "" {
				t.Error(diff)
			}
		})
	}
}
