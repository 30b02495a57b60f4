package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Bounds of one run of a task's tests.
const (
	DefaultTimeout = 300 * time.Second
	maxOutput      = 1 << 20
	maxRecords     = 64 << 20
)

// testRun is one run of a task's entrypoint.
type testRun struct {
	env.Result
	results
	probe []byte // what a probe wrote
}

// runTests runs the task's entrypoint in a sandbox, with the hooks in front.
func runTests(ctx context.Context, sb env.Sandbox, t schemas.Task, timeout time.Duration, how Variant) (testRun, error) {
	t.Workdir = cmp.Or(t.Workdir, schemas.DefaultWorkdir)
	c := newChannel(env.TempDirOf(sb))
	load, err := c.archive(t.Workdir, how)
	if err != nil {
		return testRun{}, err
	}
	records := c.dir + "/records"
	err = sb.WriteFile(ctx, records, nil, 0o600)
	if errors.Is(err, env.ErrRefused) { // the agent may have locked the directory it lies in
		unlock := env.Command{Args: []string{"chmod", "u+rwx", path.Dir(c.dir)}, Timeout: 10 * time.Second}
		if _, err = sb.Run(ctx, unlock); err == nil {
			err = sb.WriteFile(ctx, records, nil, 0o600)
		}
	}
	if err != nil {
		return testRun{}, fmt.Errorf("placing the file of test results: %w", err)
	}
	var out testRun
	out.Result, err = sb.Run(ctx, env.Command{
		Args: c.args(t.Entrypoint), Dir: t.Workdir, Env: how.env(), Timeout: cmp.Or(how.Timeout, timeout), MaxOutput: maxOutput,
		Sealed: load, Keys: &c.keys,
	})
	if err != nil {
		return out, fmt.Errorf("running the tests: %w", err)
	}
	raw, total, err := sb.ReadFile(ctx, records, maxRecords)
	switch {
	case errors.Is(err, env.ErrNotExist), errors.Is(err, env.ErrRefused):
		out.results = forged("was removed or replaced")
	case err != nil:
		return out, fmt.Errorf("reading test results: %w", err)
	case total > int64(len(raw)):
		out.results = forged(fmt.Sprintf("holds %d bytes, more than the %d allowed", total, int64(maxRecords)))
	default:
		out.results = c.read(raw, out.Keys)
	}
	if how.Probe != nil {
		out.probe, _, err = sb.ReadFile(ctx, c.dir+"/"+probeFile, how.Probe.Limit)
		if err != nil && !errors.Is(err, env.ErrNotExist) && !errors.Is(err, env.ErrRefused) {
			return out, fmt.Errorf("reading what the probe wrote: %w", err)
		}
	}
	// The agent goes on using this sandbox; an old channel is of no use to it.
	_, err = sb.Run(ctx, env.Command{Args: []string{"rm", "-rf", c.dir}, Timeout: 10 * time.Second})
	if err != nil {
		return out, fmt.Errorf("removing test hooks: %w", err)
	}
	return out, nil
}

// Eval runs the task's tests in the agent's sandbox. Score is the number of
// passed fail-to-pass tests (of all tests where the task lists none; of one for
// an entrypoint without per-test results); Passed says that everything the task
// asks for passed and the run ended cleanly. It is never a verdict. The run may
// take limit (0 = DefaultTimeout), and no longer than ctx allows.
func Eval(ctx context.Context, sb env.Sandbox, t schemas.Task, limit time.Duration) (env.EvalReport, error) {
	timeout := cmp.Or(limit, DefaultTimeout)
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline)-time.Second, time.Second))
	}
	run, err := runTests(ctx, sb, t, timeout, Variant{})
	if err != nil {
		return env.EvalReport{}, err
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
	j := judge(spec, run)
	report.Passed = j.reason == ""
	switch {
	case spec.Method == schemas.VerifyExitCode:
		report.Max = 1
		if report.Passed {
			report.Score = 1
		}
	case len(spec.FailToPass) > 0:
		report.Score, report.Max = float64(j.f2p), float64(len(spec.FailToPass))
	default:
		report.Score, report.Max = float64(j.p2p), float64(len(spec.PassToPass))
	}
	return report, nil
}

// notRun are the tests that were to run and did not begin, in their order.
func (r testRun) notRun() []string {
	return slices.DeleteFunc(slices.Clone(r.planned), func(id string) bool {
		_, ran := r.tests[id]
		return ran || id == r.running
	})
}

// asSpec asks for every test that was seen to pass; without any, for a clean exit.
func (r testRun) asSpec() schemas.TestSpec {
	if r.runners == 0 {
		return schemas.TestSpec{Method: schemas.VerifyExitCode}
	}
	return schemas.TestSpec{Method: r.method(), PassToPass: sortedKeys(r.tests)}
}
