package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Eval runs the task's tests in the agent's sandbox. Score is the number of fail-to-pass tests that
// passed. If the task lists only pass-to-pass tests, it is the number of those that passed. If the task
// lists no tests, it is the number of all tests that passed, or 0 or 1 if the entrypoint starts no test
// runner that reports single tests. Passed is true if everything that the task requires
// passed and the run ended cleanly. The run takes at most limit (0 = DefaultTimeout), and ends before
// the deadline of ctx.
func Eval(ctx context.Context, sb env.Sandbox, t schemas.Task, limit time.Duration) (env.EvalReport, error) {
	timeout := cmp.Or(limit, DefaultTimeout)
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline)-time.Second, time.Second))
	}
	run, err := runTests(ctx, sb, t, timeout, Variant{})
	if err != nil {
		return env.EvalReport{}, err
	}
	// The agent may continue to use this sandbox, so no file of the verifier may stay in it.
	if _, err := sb.Run(ctx, env.Command{Args: []string{"rm", "-rf", run.dir}, Timeout: 10 * time.Second}); err != nil {
		return env.EvalReport{}, fmt.Errorf("removing test hooks: %w", err)
	}
	report := env.EvalReport{
		Tests: maps.Clone(run.tests), Output: string(run.Output), OutputBytes: run.Total,
		ExitCode: run.ExitCode, TimedOut: run.TimedOut, Wall: run.Wall,
	}
	report.Running, report.Died = run.running, run.died && !run.TimedOut
	if run.running != "" || run.died {
		report.NotRun = run.notRun()
	}
	spec := t.Tests
	if len(spec.FailToPass)+len(spec.PassToPass) == 0 {
		spec = run.asSpec()
	}
	a := assess(spec, run)
	report.Passed = a.reason == ""
	switch {
	case spec.Method == schemas.VerifyExitCode:
		report.Max = 1
		if report.Passed {
			report.Score = 1
		}
	case len(spec.FailToPass) > 0:
		report.Score, report.Max = float64(a.f2p), float64(len(spec.FailToPass))
	default:
		report.Score, report.Max = float64(a.p2p), float64(len(spec.PassToPass))
	}
	return report, nil
}

// asSpec returns a spec that requires every test of the run to pass, or the exit code 0 if no test
// runner ran.
func (r testRun) asSpec() schemas.TestSpec {
	if r.runners == 0 {
		return schemas.TestSpec{Method: schemas.VerifyExitCode}
	}
	return schemas.TestSpec{Method: r.method(), PassToPass: slices.Sorted(maps.Keys(r.tests))}
}
