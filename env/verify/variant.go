package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Variant says how a run of a task's tests differs from the one that makes a
// verdict, which is the zero Variant.
type Variant struct {
	HashSeed string        // PYTHONHASHSEED; "" = the sandbox's own
	Shuffle  int64         // seed of the order of tests; 0 = the runner's own order
	Only     []string      // ids of the tests that run; nil = all
	Timeout  time.Duration // 0 = the verifier's
	Probe    *Probe
}

// Probe is Python code that watches the tests of a run from inside their
// interpreters. Its module has a function start(config, path, place): config is
// Config, path the file it may append to, and place(file) names a file of the
// workspace relative to it (None for any other). What start returns has the
// methods begin(id) and end(id), called around each test, its fixtures included.
type Probe struct {
	Source string
	Config any   // becomes JSON
	Limit  int64 // bytes kept of what it writes
}

// probeFile is where a probe writes, in the channel's directory.
const probeFile = "probe"

// Run is what one run of a task's tests told.
type Run struct {
	env.Result
	Method      string             // by the form of the ids; VerifyExitCode without a runner
	Tests       map[string]string  // id -> passed, failed, error, skipped, xfailed, xpassed
	Seconds     map[string]float64 // id -> how long the test's own function took, where that is known
	Uncollected []string           // what the runner could not collect
	// Finding says why the results cannot be trusted or are not whole; "" for a
	// run that came to its end.
	Finding string
	// Unstarted says that the runner gave up before any test, and nothing else is to be
	// found: it could not load its configuration. The finding has its last words.
	Unstarted bool
	Probe     []byte // what the probe wrote, hostile as everything from inside

	docs map[string]string // id -> first line of its docstring
}

func (r testRun) public() Run {
	out := Run{Result: r.Result, Method: schemas.VerifyExitCode, Tests: r.tests, Seconds: r.seconds,
		Uncollected: r.uncollected, Probe: r.probe, docs: r.docs}
	if r.runners > 0 {
		out.Method = r.method()
	}
	switch {
	case r.TimedOut:
		out.Finding = "the tests ran out of time"
	case r.Limit != "":
		out.Finding = "the tests reached the sandbox's limit of " + r.Limit
	case len(r.tampered) > 0:
		out.Finding = r.tampered[0]
	case r.unfinished:
		out.Finding = fmt.Sprintf("the test runner did not come to its end (exit code %d)", r.ExitCode)
		if out.Unstarted = len(r.tests)+len(r.uncollected) == 0 && r.ExitCode != 0; out.Unstarted {
			out.Finding += ": " + Cause(r.Output)
		}
	case len(r.twice) > 0:
		out.Finding = "test reported twice: " + r.twice[0]
	}
	return out
}

// Of tells how the tests came out that listed ids stand for (see TestSpec): the
// worst status of them and their full ids; an id without any is absent.
func (r Run) Of(listed []string) (status map[string]string, full map[string][]string) {
	all := newCatalogue(r.Tests, r.docs)
	status, full = map[string]string{}, map[string][]string{}
	for _, id := range listed {
		if word, ran := all.status(id); ran {
			status[id], full[id] = word, all.find(id)
		}
	}
	return status, full
}

// Observe runs the tests on a tree with a patch, in a sandbox of its own, and
// judges nothing: no file is put back but the hidden tests, no patch refused. A patch that does not
// apply is a *workspace.ApplyError.
func (v *Verifier) Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, how Variant) (Run, error) {
	sha, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return Run{}, err
	}
	hidden, err := v.hiddenTests(ctx, t, sha)
	if err != nil {
		return Run{}, err
	}
	if sha, err = v.cfg.Store.Apply(ctx, sha, patch); err != nil {
		return Run{}, err
	}
	if sha, _, err = hidden.place(ctx, v.cfg.Store, sha); err != nil {
		return Run{}, err
	}
	run, err := v.run(ctx, t, sha, how)
	if err != nil {
		return Run{}, fmt.Errorf("observing task %s: %w", t.InstanceID, err)
	}
	return run.public(), nil
}

// Spec is the task's test lists, or those of its baseline where it has none. A
// task that cannot be judged is a *TaskError.
func (v *Verifier) Spec(ctx context.Context, t schemas.Task, tree env.Tree) (schemas.TestSpec, error) {
	return v.spec(ctx, t, tree)
}

// Protected lists the files of a tree that are graded as it has them, whatever a
// patch does to them.
func (v *Verifier) Protected(ctx context.Context, t schemas.Task, spec schemas.TestSpec, tree env.Tree) ([]string, error) {
	base, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return nil, err
	}
	files, err := v.cfg.Store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	r, err := v.layout(ctx, t, spec, base, files)
	if err != nil {
		return nil, err
	}
	var out []string
	protected := protector(t, spec, files)
	for _, f := range files {
		if protected(f.Path) || r.protects(f.Path) {
			out = append(out, f.Path)
		}
	}
	return out, nil
}

// order is what the interpreters are asked for.
func (how Variant) order() map[string]any {
	o := map[string]any{}
	if how.Shuffle != 0 {
		o["shuffle"] = how.Shuffle
	}
	if how.Only != nil {
		o["only"] = how.Only
	}
	if how.Probe != nil {
		o["probe"] = how.Probe.Config
	}
	return o
}

func (how Variant) env() []string {
	if how.HashSeed == "" {
		return nil
	}
	return []string{"PYTHONHASHSEED=" + how.HashSeed}
}

// seconds reads a duration that the hooks wrote in microseconds.
func seconds(raw json.Number) (float64, bool) {
	n, err := raw.Int64()
	return float64(n) / 1e6, err == nil && n >= 0 && !strings.HasPrefix(raw.String(), "-")
}
