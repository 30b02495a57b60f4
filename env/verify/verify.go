package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Verifier verifies each patch in a new sandbox. It is safe for concurrent use.
type Verifier struct {
	cfg       Config
	baselines env.Baselines // the key is the task id
	layouts   layoutCache
}

var _ env.Verifier = (*Verifier)(nil)

// MaxLog is the number of bytes of the runner's output that a verdict keeps.
const MaxLog = 64 << 10

// New returns a Verifier.
func New(cfg Config) *Verifier {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Verifier{cfg: cfg}
}

// Verify implements env.Verifier. The patch must turn the task's tree into the tree with the git hash
// finalSHA ("" = unknown). The verdict says what is wrong with the patch or the task. An error means
// that the infrastructure failed and the caller may try again; the verdict then has the status
// VerifyError.
func (v *Verifier) Verify(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string) (schemas.Verdict, error) {
	verdict, _, err := v.VerifyVariant(ctx, t, tree, patch, finalSHA, Variant{})
	return verdict, err
}

// VerifyVariant verifies a patch with a variant of the test run, for example with another hash seed,
// another order of tests, or a probe. It also returns the run, which is zero if the tests did not run.
func (v *Verifier) VerifyVariant(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string,
	variant Variant,
) (schemas.Verdict, Run, error) {
	return v.verify(ctx, t, tree, patch, finalSHA, variant, nil)
}

func (v *Verifier) verify(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string,
	variant Variant, recording *Recording,
) (schemas.Verdict, Run, error) {
	verdict := schemas.Verdict{Status: schemas.VerifyError, Method: t.Tests.Method, FinalSHA: finalSHA}
	if t.Tests.Method == schemas.VerifyNone {
		verdict.Status, verdict.Reason = schemas.VerifyNotApplicable, "there is no way to verify this task"
		return verdict, Run{}, nil
	}
	fail := func(err error) (schemas.Verdict, Run, error) {
		verdict, err := explain(verdict, err)
		return verdict, Run{}, err
	}
	spec, err := v.Spec(ctx, t, tree)
	if err != nil {
		return fail(err)
	}
	verdict.Method = spec.Method
	verdict.F2PTotal, verdict.P2PTotal = len(spec.FailToPass), len(spec.PassToPass)
	for _, want := range spec.Expected {
		if want == schemas.StatusPassed {
			verdict.F2PTotal++
		}
	}
	base, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return fail(err)
	}
	final, err := v.cfg.Store.Apply(ctx, base, patch)
	if err != nil {
		return fail(err)
	}
	verdict.FinalSHA = final
	if finalSHA != "" && final != finalSHA {
		verdict.FinalSHA = finalSHA
		verdict.Reason = fmt.Sprintf("applying the patch to the base gives tree %s, not %s: the patch does not match the files that the agent left", final, finalSHA)
		return verdict, Run{}, nil
	}
	return v.grade(ctx, t, spec, base, final, verdict, variant, recording)
}

// explain adds the reason of err to the verdict. It returns an error unless the cause is a patch that
// does not apply or a task that cannot be verified.
func explain(verdict schemas.Verdict, err error) (schemas.Verdict, error) {
	verdict.Reason, _, _ = strings.Cut(err.Error(), "\n")
	if _, ok := errors.AsType[*workspace.ApplyError](err); ok {
		return verdict, nil
	}
	if _, ok := errors.AsType[*TaskError](err); ok {
		return verdict, nil
	}
	return verdict, fmt.Errorf("verifying: %w", err)
}

// EffectOf reports whether a patch still changes anything after the protected files are restored, and
// which of its files verification refuses. If the patch changes nothing, its verdict is that of an
// empty patch.
func (v *Verifier) EffectOf(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte) (changed bool, refused []string, err error) {
	fail := func(err error) (bool, []string, error) { return false, nil, fmt.Errorf("verifying: %w", err) }
	spec, err := v.Spec(ctx, t, tree)
	if err != nil {
		return fail(err)
	}
	base, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return fail(err)
	}
	final, err := v.cfg.Store.Apply(ctx, base, patch)
	if err != nil {
		return fail(err)
	}
	g, err := v.prepare(ctx, t, spec, base, final)
	if err != nil {
		return fail(err)
	}
	for _, r := range g.refused {
		refused = append(refused, r.path)
	}
	return g.tree != base, refused, nil
}

// maxDeaths is the number of fresh sandboxes that must die in a row before the verdict blames the patch.
// It does not blame the patch if the driver reports an external cause.
const maxDeaths = 3

// prepare calls the function prepare with the layout of the base tree.
func (v *Verifier) prepare(ctx context.Context, t schemas.Task, spec schemas.TestSpec, base, final string) (*candidate, error) {
	r, err := v.layouts.get(ctx, v.cfg.Store, t, spec, base)
	if err != nil {
		return nil, err
	}
	return prepare(ctx, v.cfg.Store, r, t, spec, base, final)
}

// grade restores the protected files, refuses a patch with files that it must not contain, runs the
// tests once, and completes the verdict.
func (v *Verifier) grade(ctx context.Context, t schemas.Task, spec schemas.TestSpec, base, final string, verdict schemas.Verdict, variant Variant,
	recording *Recording,
) (schemas.Verdict, Run, error) {
	fail := func(err error) (schemas.Verdict, Run, error) {
		verdict, err := explain(verdict, err)
		return verdict, Run{}, err
	}
	g, err := v.prepare(ctx, t, spec, base, final)
	if err != nil {
		return fail(err)
	}
	verdict.Restored, verdict.Warnings = g.restored, g.warnings
	if len(g.refused) > 0 {
		for _, r := range g.refused {
			verdict.Refused = append(verdict.Refused, r.path)
		}
		return decide(verdict, fmt.Sprintf("refused: %s %s", g.refused[0].path, g.refused[0].why)), Run{}, nil
	}
	tested, removed, err := g.hidden.place(ctx, v.cfg.Store, g.tree)
	if err != nil {
		return fail(err)
	}
	verdict.Restored = append(verdict.Restored, removed...)
	died := func(err error) bool { return errors.Is(err, env.ErrSandboxDied) && ctx.Err() == nil }
	run, err := runOrReuse(ctx, v.cfg, t, tested, variant, recording)
	for n := 1; died(err) && n < maxDeaths; n++ {
		run, err = runOrReuse(ctx, v.cfg, t, tested, variant, recording)
	}
	if diedErr, ok := errors.AsType[*env.DiedError](err); died(err) && (!ok || diedErr.CausedByCommand) {
		return decide(verdict, "the sandbox died while the tests ran"), Run{}, nil
	}
	if err != nil {
		return fail(err)
	}
	if found := findIntrusion(run.events, g.changes, g.read(base)); found != "" {
		run.tampered = append(run.tampered, found)
	}
	if spec.Method == schemas.VerifyExitCode && len(run.Keys) > 0 && run.ended == 0 && !g.exitsEarly {
		run.tampered = append(run.tampered, "the interpreter ended without running its exit handlers, so its exit code proves nothing")
	}
	for _, file := range run.hookFiles {
		if slices.ContainsFunc(g.changes, func(c workspace.Change) bool { return c.Path == file }) || strings.HasPrefix(file, "<") {
			run.tampered = append(run.tampered, "the patch changed "+file+", which implements hooks of the test runner")
		}
	}
	if g.err != nil {
		return fail(g.err)
	}
	a := assess(spec, run)
	verdict.F2PPassed, verdict.P2PPassed, verdict.Parsed = a.f2p, a.p2p, len(run.tests)
	verdict.Log, verdict.LogSHA256 = capLog(run.Output), schemas.HashBytes(run.Output)
	return decide(verdict, a.reason), run.public(), nil
}

// decide completes a verdict. It is "resolved" if reason is "".
func decide(verdict schemas.Verdict, reason string) schemas.Verdict {
	resolved := reason == ""
	verdict.Resolved = &resolved
	verdict.Reason = strings.ToValidUTF8(strings.Join(strings.Fields(reason), " "), "\uFFFD")
	verdict.Status = schemas.VerifiedFail
	if resolved {
		verdict.Status = schemas.VerifiedPass
	}
	return verdict
}

// capLog returns out, without the middle if it is longer than MaxLog.
func capLog(out []byte) string {
	text := string(out)
	if len(text) > MaxLog {
		cut := fmt.Sprintf("\n[... %d bytes cut ...]\n", len(text)-MaxLog)
		half := (MaxLog - len(cut)) / 2
		text = text[:half] + cut + text[len(text)-half:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Observe runs the tests on a tree with a patch in a new sandbox, without a verdict. It adds the
// hidden tests, but restores no other file and refuses no patch. The error is a *workspace.ApplyError
// if the patch does not apply.
func (v *Verifier) Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, variant Variant) (Run, error) {
	recording, err := v.observe(ctx, t, tree, patch, variant)
	if err != nil {
		return Run{}, err
	}
	return recording.Run(), nil
}

func (v *Verifier) observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, variant Variant) (*Recording, error) {
	sha, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return nil, err
	}
	hidden, err := findHidden(ctx, v.cfg.Store, t, sha)
	if err != nil {
		return nil, err
	}
	if sha, err = v.cfg.Store.Apply(ctx, sha, patch); err != nil {
		return nil, err
	}
	if sha, _, err = hidden.place(ctx, v.cfg.Store, sha); err != nil {
		return nil, err
	}
	run, err := runFresh(ctx, v.cfg, t, sha, variant)
	if err != nil {
		return nil, fmt.Errorf("observing task %s: %w", t.InstanceID, err)
	}
	return &Recording{sha, run}, nil
}

// Protected returns the files of a tree that verification restores if a patch changes or deletes them.
func (v *Verifier) Protected(ctx context.Context, t schemas.Task, spec schemas.TestSpec, tree env.Tree) ([]string, error) {
	base, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return nil, err
	}
	files, err := v.cfg.Store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	r, err := v.layouts.get(ctx, v.cfg.Store, t, spec, base)
	if err != nil {
		return nil, err
	}
	var out []string
	protected := newProtector(t, spec, files)
	for _, f := range files {
		if protected(f.Path) || r.protects(f.Path) {
			out = append(out, f.Path)
		}
	}
	return out, nil
}

// Spec returns the task's test lists, or those of its baseline if it has none. The error is a
// *TaskError if the task cannot be verified.
func (v *Verifier) Spec(ctx context.Context, t schemas.Task, tree env.Tree) (schemas.TestSpec, error) {
	if dir, err := findOwnRunner(ctx, v.cfg.Store, t, tree); err != nil {
		return t.Tests, err
	} else if dir != "" {
		return t.Tests, &TaskError{t.InstanceID, ErrUntrusted,
			"the repository is its own test runner, in " + dir + ": a patch could change its verifier", "leave the task out"}
	}
	if len(t.Tests.FailToPass)+len(t.Tests.PassToPass)+len(t.Tests.Expected) > 0 {
		return t.Tests, nil
	}
	spec, err := v.baselines.Get(ctx, t.ComputeID(), func(ctx context.Context) (schemas.TestSpec, error) {
		return v.Baseline(ctx, t, tree)
	})
	if err != nil {
		return t.Tests, err
	}
	return spec, nil
}

// Baseline makes a task's lists by running its tests on the unchanged repository. Tests that fail
// become fail_to_pass, and tests that pass become pass_to_pass. If the task has a gold patch, Baseline
// also runs the tests with it: fail_to_pass are then the tests that pass only with the gold patch, and
// pass_to_pass those that pass in both runs. If the entrypoint reports no results of single tests, the
// method is VerifyExitCode and the lists are empty. The other fields are those of t.Tests. The error is
// a *TaskError if the task cannot be verified.
func (v *Verifier) Baseline(ctx context.Context, t schemas.Task, tree env.Tree) (schemas.TestSpec, error) {
	return makeBaseline(ctx, v.cfg, t, tree)
}
