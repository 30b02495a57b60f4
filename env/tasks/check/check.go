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

// Config of a check. Driver, Store and NewDebugger are required. Any number of checks may use one
// Config at the same time.
type Config struct {
	Driver env.Driver
	// Spec is the base of every sandbox. Workdir, Image and Python come from the task if Spec
	// does not set them.
	Spec        env.SandboxSpec
	Store       *workspace.Store
	NewDebugger func(env.Sandbox, schemas.Task) env.Debugger

	Timeout  time.Duration // of one run of the tests; 0 = verify.DefaultTimeout
	Runs     int           // of each side; 0 = DefaultRuns
	Seed     int64         // of hash seeds and orders
	Isolated time.Duration // for runs of one test alone; 0 = DefaultIsolated, below 0 = none
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
	if c.Isolated == 0 {
		c.Isolated = DefaultIsolated
	}
	return c
}

func (c Config) verifier() *verify.Verifier {
	return verify.New(verify.Config{Driver: c.Driver, Spec: c.Spec, Store: c.Store, Timeout: c.Timeout})
}

// checker is one check under way.
type checker struct {
	Config
	v    *verify.Verifier
	task schemas.Task
	tree env.Tree
	spec schemas.TestSpec
	base string              // git tree hash of the repository
	full map[string][]string // the tests that a listed id stands for, in the first run
	rep  *Report

	output string // of the first run of the tests, without the fix
}

// Task checks one task. The report says what is wrong with the task. An error means that the
// machinery failed and the caller may try again.
func Task(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree) (Report, error) {
	begun := time.Now()
	rep := newReport(t)
	cfg = cfg.withDefaults()
	c := &checker{Config: cfg, v: cfg.verifier(), task: t, tree: tree, rep: &rep}
	found, err := c.all(ctx)
	if err != nil {
		return rep, fmt.Errorf("checking task %s: %w", t.InstanceID, err)
	}
	rep.close(found)
	rep.Seconds = time.Since(begun).Seconds()
	return rep, nil
}

// all runs the steps up to the first finding, cheap and fundamental ones first.
func (c *checker) all(ctx context.Context) (finding, error) {
	steps := []func(context.Context) (finding, error){
		c.placed, c.golden, c.lists, c.before, c.after, c.reversed, c.cheated, c.inside, c.stable, c.alone,
	}
	end := finding{status: Sound}
	switch {
	case c.task.Tests.Method == schemas.VerifyNone:
		steps, end.status = []func(context.Context) (finding, error){c.placed, c.inside}, Unjudged
	case c.task.GoldPatch == "":
		end.status = NoGold
	}
	for _, step := range steps {
		if found, err := step(ctx); err != nil || found.status != "" {
			return found, err
		}
	}
	return end, nil
}

// placed checks that the repository is the one for which the task was made.
func (c *checker) placed(ctx context.Context) (finding, error) {
	if have := c.tree.SHA256(); c.task.TreeSHA256 != "" && have != c.task.TreeSHA256 {
		return finding{Broken, fmt.Sprintf("the repository is %s, the task was made for %s", have, c.task.TreeSHA256)}, nil
	}
	var err error
	c.base, err = c.Store.Base(ctx, c.tree)
	return finding{}, err
}

// lists finds the task's test lists, or makes them by a baseline.
func (c *checker) lists(ctx context.Context) (finding, error) {
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

// before runs the tests on the unchanged repository, which is also the verdict on an empty patch.
func (c *checker) before(ctx context.Context) (finding, error) {
	verdict, run, err := c.v.Try(ctx, c.task, c.tree, nil, "", verify.Variant{})
	if err != nil {
		return finding{}, err
	}
	c.rep.Before, c.rep.TestWall, c.output = c.vector(run), run.Wall.Seconds(), string(run.Output)
	_, c.full = run.Of(c.listed())
	if found := c.whole(verdict, run); found.status != "" {
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

// after is the verdict on the gold patch.
func (c *checker) after(ctx context.Context) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	verdict, run, err := c.v.Try(ctx, c.task, c.tree, []byte(c.task.GoldPatch), "", verify.Variant{})
	if err != nil {
		return finding{}, err
	}
	c.rep.After = c.vector(run)
	switch found := c.whole(verdict, run); {
	case found.status == TooSlow, found.status == Untrusted:
		return found, nil
	case !resolved(verdict):
		return finding{GoldFails, verdict.Reason}, nil
	}
	return finding{}, nil
}

// whole returns the finding of a run that proves nothing.
func (c *checker) whole(verdict schemas.Verdict, run verify.Run) finding {
	switch {
	case verdict.Status == schemas.VerifyError:
		return finding{Broken, verdict.Reason}
	case run.TimedOut:
		return finding{TooSlow, fmt.Sprintf("the tests ran out of time after %s", run.Wall.Round(time.Second))}
	case run.Unstarted:
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

// vector is the statuses of the listed tests in a run.
func (c *checker) vector(run verify.Run) Vector {
	if c.spec.Method == schemas.VerifyExitCode {
		word := "failed"
		if run.ExitCode == 0 && !run.TimedOut {
			word = "passed"
		}
		return Vector{schemas.VerifyExitCode: word}
	}
	out := Vector{}
	status, _ := run.Of(c.listed())
	for _, id := range c.listed() {
		out[id] = cmp.Or(status[id], missing)
	}
	return out
}

// listed are the ids that decide the verdict.
func (c *checker) listed() []string {
	if c.spec.Expected != nil {
		return slices.Sorted(maps.Keys(c.spec.Expected))
	}
	return slices.Concat(c.spec.FailToPass, c.spec.PassToPass)
}
