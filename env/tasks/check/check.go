package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config configures checks. Driver and Store are required; Task also requires NewDebugger. Any number of checks may use
// a Config at the same time.
type Config struct {
	Driver env.Driver
	// Spec is the base of every sandbox's spec. If it does not set Workdir, Image or Python, the task does.
	Spec        env.SandboxSpec
	Store       *workspace.Store
	NewDebugger func(env.Sandbox, schemas.Task) env.Debugger

	Timeout  time.Duration // limit of one run of the tests; 0 means verify.DefaultTimeout
	Runs     int           // runs without the fix, and with it; 0 means DefaultRuns
	Seed     int64         // seed for the hash seeds and orders of reruns
	Isolated time.Duration // tests run alone only if that takes no longer; 0 means DefaultIsolated, below 0 never
}

// Defaults of Config.
const (
	DefaultRuns     = 5
	DefaultIsolated = 30 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Runs <= 0 {
		c.Runs = DefaultRuns
	}
	c.Isolated = cmp.Or(c.Isolated, DefaultIsolated)
	return c
}

func (c Config) verifier() *verify.Verifier {
	return verify.New(verify.Config{Driver: c.Driver, Spec: c.Spec, Store: c.Store, Timeout: c.Timeout})
}

// checker is the state of one check.
type checker struct {
	Config
	v        *verify.Verifier
	task     schemas.Task
	tree     env.Tree
	spec     schemas.TestSpec
	base     string              // git tree hash of the repository
	expanded map[string][]string // for each listed id, the tests of the first run that it stands for
	rep      *Report

	output string // output of the first run of the tests, without the fix
}

// Task checks one task. The report says what is wrong with the task. An error means that the check itself failed, for
// example because a sandbox did not start; the caller may try again.
func Task(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree) (Report, error) {
	start := time.Now()
	rep := newReport(t)
	cfg = cfg.withDefaults()
	c := &checker{Config: cfg, v: cfg.verifier(), task: t, tree: tree, rep: &rep}
	found, err := c.runSteps(ctx)
	if err != nil {
		return rep, fmt.Errorf("checking task %s: %w", t.InstanceID, err)
	}
	rep.finish(found)
	rep.Seconds = time.Since(start).Seconds()
	return rep, nil
}

// runSteps runs the steps of the check up to the first finding. Cheap and fundamental steps come first.
func (c *checker) runSteps(ctx context.Context) (finding, error) {
	steps := []func(context.Context) (finding, error){
		c.checkTree, c.checkGoldPatch, c.findTests, c.runBefore, c.runAfter, c.checkReversal, c.checkCheats, c.checkSandbox,
		c.checkStability, c.checkAlone,
	}
	noFinding := finding{status: Sound}
	switch {
	case c.task.Tests.Method == schemas.VerifyNone:
		steps, noFinding.status = []func(context.Context) (finding, error){c.checkTree, c.checkSandbox}, Unjudged
	case c.task.GoldPatch == "":
		noFinding.status = NoGold
	}
	for _, step := range steps {
		if found, err := step(ctx); err != nil || found.status != "" {
			return found, err
		}
	}
	return noFinding, nil
}

// checkTree checks that the repository is the one for which the task was made.
func (c *checker) checkTree(ctx context.Context) (finding, error) {
	if hash := c.tree.SHA256(); c.task.TreeSHA256 != "" && hash != c.task.TreeSHA256 {
		return finding{Broken, fmt.Sprintf("the repository has the hash %s, but the task was made for %s", hash, c.task.TreeSHA256)}, nil
	}
	var err error
	c.base, err = c.Store.Base(ctx, c.tree)
	return finding{}, err
}

// findTests gets the task's lists of tests. If it has none, a baseline run of the tests provides them.
func (c *checker) findTests(ctx context.Context) (finding, error) {
	spec, err := c.v.Spec(ctx, c.task, c.tree)
	if defect, ok := errors.AsType[*verify.TaskError](err); ok {
		return finding{statusOf(defect), defect.Summary()}, nil
	}
	if err != nil {
		return finding{}, err
	}
	c.spec, c.task.Tests = spec, spec
	c.rep.Method, c.rep.FailToPass, c.rep.PassToPass = spec.Method, spec.FailToPass, spec.PassToPass
	if spec.Method != schemas.VerifyExitCode && len(spec.FailToPass)+len(spec.Expected) == 0 {
		return finding{NotFailing, "no test is listed that fails because of the bug"}, nil
	}
	return finding{}, nil
}

// statusOf returns the status that corresponds to the error about a task.
func statusOf(defect *verify.TaskError) Status {
	for kind, status := range map[error]Status{
		verify.ErrNothingToFix: NotFailing, verify.ErrTooSlow: TooSlow,
		verify.ErrGoldFails: GoldFails, verify.ErrUntrusted: Untrusted,
	} {
		if errors.Is(defect, kind) {
			return status
		}
	}
	return Broken
}

// runBefore runs the tests on the unchanged repository. The result is also the verdict on an empty patch.
func (c *checker) runBefore(ctx context.Context) (finding, error) {
	verdict, run, err := c.v.VerifyVariant(ctx, c.task, c.tree, nil, "", verify.Variant{})
	if err != nil {
		return finding{}, err
	}
	c.rep.Before, c.rep.TestWall, c.output = c.testVerdicts(run), run.Wall.Seconds(), string(run.Output)
	_, c.expanded = run.StatusOf(c.listed())
	if found := c.runFinding(verdict, run); found.status != "" {
		return found, nil
	}
	for _, id := range c.spec.FailToPass {
		switch got := c.rep.Before[id]; {
		case got == "failed", got == "error":
		case got == missing && (c.task.GoldPatch != "" || len(run.Uncollected) > 0):
		case got == missing:
			return finding{Broken, "there is no test " + id}, nil
		default:
			return finding{NotFailing, fmt.Sprintf("%s %s before the fix", id, got)}, nil
		}
	}
	for _, id := range c.spec.PassToPass {
		if got := c.rep.Before[id]; got != "passed" {
			return finding{NotPassing, fmt.Sprintf("%s %s before the fix", id, got)}, nil
		}
	}
	if resolved(verdict) {
		return finding{NotFailing, "an empty patch resolves the task"}, nil
	}
	return finding{}, nil
}

// runAfter runs the tests with the gold patch, which must resolve the task.
func (c *checker) runAfter(ctx context.Context) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	verdict, run, err := c.v.VerifyVariant(ctx, c.task, c.tree, []byte(c.task.GoldPatch), "", verify.Variant{})
	if err != nil {
		return finding{}, err
	}
	c.rep.After = c.testVerdicts(run)
	switch found := c.runFinding(verdict, run); {
	case found.status == TooSlow, found.status == Untrusted:
		return found, nil
	case !resolved(verdict):
		return finding{GoldFails, verdict.Reason}, nil
	}
	return finding{}, nil
}

// runFinding returns the finding if the results of a run cannot be used, for example because it timed out.
func (c *checker) runFinding(verdict schemas.Verdict, run verify.Run) finding {
	switch {
	case verdict.Status == schemas.VerifyError:
		return finding{Broken, verdict.Reason}
	case run.TimedOut:
		return finding{TooSlow, fmt.Sprintf("the tests ran out of time after %s", run.Wall.Round(time.Second))}
	case run.NoTestsStarted:
		return finding{Broken, run.Finding}
	case run.Finding != "":
		return finding{Untrusted, run.Finding}
	case strings.HasPrefix(verdict.Reason, "refused:"):
		return finding{Untrusted, verdict.Reason}
	}
	return finding{}
}

func resolved(v schemas.Verdict) bool { return v.Resolved != nil && *v.Resolved }

// missing is the status of a listed test that did not run.
const missing = "missing"

// testVerdicts returns the verdicts on the listed tests in a run.
func (c *checker) testVerdicts(run verify.Run) TestVerdicts {
	if c.spec.Method == schemas.VerifyExitCode {
		verdict := "failed"
		if run.ExitCode == 0 && !run.TimedOut {
			verdict = "passed"
		}
		return TestVerdicts{schemas.VerifyExitCode: verdict}
	}
	out := TestVerdicts{}
	status, _ := run.StatusOf(c.listed())
	for _, id := range c.listed() {
		out[id] = cmp.Or(status[id], missing)
	}
	return out
}

// listed returns the ids of the tests that decide the verdict.
func (c *checker) listed() []string {
	if c.spec.Expected != nil {
		return slices.Sorted(maps.Keys(c.spec.Expected))
	}
	return slices.Concat(c.spec.FailToPass, c.spec.PassToPass)
}
