package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of one run of a task's tests.
const (
	DefaultTimeout = 300 * time.Second
	maxOutput      = 1 << 20
	maxRecords     = 64 << 20
)

// testRun is one run of a task's entrypoint.
type testRun struct {
	env.Result
	results
	probe []byte // output of the probe
	dir   string // the directory in the sandbox that runTests has left there
}

// runTests runs the task's entrypoint in a sandbox and returns the results of its tests. The hooks, which
// report them (see channel), come first in PYTHONPATH. If a program tampered with the results, tampered
// in the testRun says so and there is no error.
func runTests(ctx context.Context, sb env.Sandbox, t schemas.Task, timeout time.Duration, variant Variant) (testRun, error) {
	t.Workdir = cmp.Or(t.Workdir, schemas.DefaultWorkdir)
	c := newChannel(env.TempDirOf(sb))
	compiled, err := compileHooks(ctx, env.HostPythonOf(sb))
	if err != nil {
		return testRun{}, err
	}
	archive, err := c.hooksArchive(t.Workdir, variant, compiled)
	if err != nil {
		return testRun{}, err
	}
	records := c.dir + "/records"
	err = sb.WriteFile(ctx, records, nil, 0o600)
	if errors.Is(err, env.ErrRefused) { // the agent may have locked the directory
		unlock := env.Command{Args: []string{"chmod", "u+rwx", path.Dir(c.dir)}, Timeout: 10 * time.Second}
		if _, err = sb.Run(ctx, unlock); err == nil {
			err = sb.WriteFile(ctx, records, nil, 0o600)
		}
	}
	if err != nil {
		return testRun{}, fmt.Errorf("placing the file of test results: %w", err)
	}
	out := testRun{dir: c.dir}
	out.Result, err = sb.Run(ctx, env.Command{
		Args: c.args(t.Entrypoint), Dir: t.Workdir, Env: variant.env(), Timeout: cmp.Or(variant.Timeout, timeout), MaxOutput: maxOutput,
		Sealed: archive, Keys: &c.keys,
	})
	if err != nil {
		return out, fmt.Errorf("running the tests: %w", err)
	}
	raw, total, err := sb.ReadFile(ctx, records, maxRecords)
	switch {
	case errors.Is(err, env.ErrNotExist), errors.Is(err, env.ErrRefused):
		out.results = tamperedResults("was removed or replaced")
	case err != nil:
		return out, fmt.Errorf("reading test results: %w", err)
	case total > int64(len(raw)):
		out.results = tamperedResults(fmt.Sprintf("holds %d bytes, more than the %d allowed", total, int64(maxRecords)))
	default:
		out.results = c.read(raw, out.Keys)
	}
	if variant.Probe != nil {
		out.probe, _, err = sb.ReadFile(ctx, c.dir+"/"+probeFile, variant.Probe.Limit)
		if err != nil && !errors.Is(err, env.ErrNotExist) && !errors.Is(err, env.ErrRefused) {
			return out, fmt.Errorf("reading the output of the probe: %w", err)
		}
	}
	return out, nil
}

// notRun returns the planned tests that did not start, in their planned order.
func (r testRun) notRun() []string {
	return slices.DeleteFunc(slices.Clone(r.planned), func(id string) bool {
		_, ran := r.tests[id]
		return ran || id == r.running
	})
}

// Run is the result of one run of a task's tests.
type Run struct {
	env.Result
	Method      string             // guessed from the ids; VerifyExitCode if no test runner ran
	Tests       map[string]string  // id -> passed, failed, error, skipped, xfailed, xpassed
	Seconds     map[string]float64 // id -> time of the test function without fixtures, if known
	Uncollected []string           // ids of files and classes that the runner could not collect
	Duplicates  []string           // ids that were reported more than once
	Running     string             // id of the test that was running when the run was ended, if known
	// Finding explains why the results are untrusted or incomplete. It is "" for a complete run.
	Finding string
	// Untrusted is true if the results cannot be trusted, for example because the repository
	// contains a part of the runner. A caller that tries several setups must stop at this one, because
	// another setup could hide the cause.
	Untrusted bool
	// NoTestsStarted is true if the runner ended before the first test, for example because it could
	// not load its configuration. Finding then includes the runner's error message.
	NoTestsStarted bool
	Probe          []byte // output of the probe, not trusted

	docs map[string]string // id -> first line of its docstring
}

// public returns the run in its exported form.
func (r testRun) public() Run {
	out := Run{Result: r.Result, Method: schemas.VerifyExitCode, Tests: r.tests, Seconds: r.seconds,
		Uncollected: r.uncollected, Duplicates: r.duplicates, Running: r.running, Probe: r.probe, docs: r.docs}
	if r.runners > 0 || len(r.tests) > 0 { // a runner that was ended early is not counted
		out.Method = r.method()
	}
	switch {
	case r.TimedOut:
		out.Finding = "the tests ran out of time"
	case r.Limit != "":
		out.Finding = "the tests reached the sandbox's limit of " + r.Limit
	case len(r.tampered) > 0:
		out.Finding, out.Untrusted = r.tampered[0], true
	case r.unfinished:
		out.Finding = fmt.Sprintf("the test runner did not finish (exit code %d)", r.ExitCode)
		if out.NoTestsStarted = len(r.tests)+len(r.uncollected) == 0 && r.ExitCode != 0; out.NoTestsStarted {
			out.Finding += ": " + Cause(r.Output)
		}
	case len(r.duplicates) > 0:
		out.Finding = "test reported twice: " + r.duplicates[0]
	}
	return out
}

// Passed returns the number of tests that passed.
func (r Run) Passed() (n int) {
	for _, status := range r.Tests {
		if status == schemas.StatusPassed {
			n++
		}
	}
	return n
}

// StatusOf returns, for each listed id, the worst status of the tests that it names, and their full
// ids. An id can name several tests (see schemas.TestSpec). An id that names no test of the run is in
// neither map.
func (r Run) StatusOf(listed []string) (status map[string]string, full map[string][]string) {
	index := newTestIndex(r.Tests, r.docs)
	status, full = map[string]string{}, map[string][]string{}
	for _, id := range listed {
		if worst, ran := index.status(id); ran {
			status[id], full[id] = worst, index.find(id)
		}
	}
	return status, full
}

// method guesses the test runner from the form of the ids.
func (r testRun) method() string {
	for id := range r.tests {
		if strings.Contains(id, "::") {
			return schemas.VerifyPytest
		}
	}
	return schemas.VerifyUnittest
}
