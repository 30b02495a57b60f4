package agents_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as F11 in the names of tests are rows of docs/internals/parity.md.

// The loop ends after MaxSteps turns, and before the first turn if the tests pass at the reset. An
// error of the model is returned in an InfraError, with the steps so far.
func TestF11LoopEndsWhereItShould(t *testing.T) {
	p := &scriptedPolicy{turns: []any{calls("add")}}
	res, err := run(t, &counterEnv{}, p, func(cfg *agents.Config) { cfg.Limits.MaxSteps = 1 })
	if err != nil || res.ExitReason != schemas.ExitMaxSteps || len(p.asked) != 1 {
		t.Errorf("exit %s, asked %d times, %v", res.ExitReason, len(p.asked), err)
	}
	passed := true
	p = &scriptedPolicy{turns: []any{calls("add")}}
	if res, err = run(t, &counterEnv{passed: &passed}, p, nil); err != nil || res.ExitReason != schemas.ExitResolvedAtReset || len(p.asked) != 0 {
		t.Errorf("exit %s, asked %d times, %v", res.ExitReason, len(p.asked), err)
	}
	down := &llms.Error{Class: llms.ClassServer, Message: "down"}
	res, err = run(t, &counterEnv{}, &scriptedPolicy{turns: []any{calls("add"), down}}, nil)
	if infra, ok := errors.AsType[*agents.InfraError](err); !ok || !errors.Is(infra, down) || len(res.Steps) != 3 {
		t.Errorf("%v after %d steps", err, len(res.Steps))
	}
}

// A call that killed the sandbox is recorded with the observation that the model got. A call that
// failed without an observation is not recorded, and the model's reply stays pending: the next
// execution of the job repeats its calls.
func TestF13FailedCallsInTheRecord(t *testing.T) {
	rec := &memoryRecorder{}
	res, err := run(t, &counterEnv{}, &scriptedPolicy{turns: []any{calls("die"), calls("submit")}}, func(cfg *agents.Config) { cfg.Recorder = rec })
	if err != nil || res.Steps[2].Observation == nil || res.Steps[2].Observation.ErrorClass != schemas.ErrSandboxDied || len(rec.steps) != len(res.Steps) {
		t.Errorf("%v: %d steps, %d recorded: %+v", err, len(res.Steps), len(rec.steps), res.Steps[2].Observation)
	}
	rec = &memoryRecorder{}
	res, err = run(t, &counterEnv{stepErr: errors.New("boom")}, &scriptedPolicy{turns: []any{calls("add")}}, func(cfg *agents.Config) { cfg.Recorder = rec })
	if _, pending := rec.Replayed(); err == nil || pending == nil || len(res.Steps) != 2 || len(rec.steps) != 2 {
		t.Errorf("%v: %d steps, %d recorded, pending %v", err, len(res.Steps), len(rec.steps), pending)
	}
}

// The opening steps precede the turns. Each step is recorded once, with its number and the state
// after it, and survives a round trip through JSON.
func TestF14StepsAreTheHistory(t *testing.T) {
	p := &scriptedPolicy{turns: []any{calls("add", "read"), calls("add"), calls("submit")}}
	res, err := run(t, &counterEnv{initial: []schemas.Observation{{Source: "eval", Text: "failing"}}}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	opening := 0
	for i, s := range res.Steps {
		if s.Index != i || (s.Turn < 0) != (i < 3) || s.Turn >= 0 && s.State == nil {
			t.Errorf("step %d is %+v", i, s)
		}
		if s.Turn < 0 {
			opening++
		}
	}
	if opening != 3 || len(res.Steps) != 3+4 {
		t.Errorf("%d steps, %d of the opening", len(res.Steps), opening)
	}
	raw, err := json.Marshal(res.Steps)
	if err != nil {
		t.Fatal(err)
	}
	var back []schemas.Step
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if diff := cmp.Diff(string(raw), string(again)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
