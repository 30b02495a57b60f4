package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config of a Verifier.
type Config struct {
	Driver env.Driver
	// Spec is the base of every sandbox; Workdir, Image and Python are taken
	// from the task where Spec leaves them open.
	Spec    env.SandboxSpec
	Store   *workspace.Store
	Timeout time.Duration // of one run of the tests; 0 = DefaultTimeout
}

// Verifier judges patches, each in a sandbox of its own. It is safe for
// concurrent use.
type Verifier struct {
	cfg       Config
	baselines env.Baselines // by task id

	mu      sync.Mutex
	layouts map[string]*repository
}

var _ env.Verifier = (*Verifier)(nil)

// MaxLog is how many bytes of the runner's output a verdict keeps.
const MaxLog = 64 << 10

// New makes a verifier.
func New(cfg Config) *Verifier {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Verifier{cfg: cfg, layouts: map[string]*repository{}}
}

// Verify implements env.Verifier. The patch must make finalSHA (a git tree hash,
// "" = not known) of the task's tree exactly. What is wrong with the patch or the
// task is said in the verdict; an error, always together with the status
// VerifyError, means that our own machinery failed and the call may be repeated.
func (v *Verifier) Verify(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string) (schemas.Verdict, error) {
	verdict, _, err := v.Try(ctx, t, tree, patch, finalSHA, Variant{})
	return verdict, err
}

// Try is Verify with the run it judged: under another hash seed, in another
// order, or watched. Run is empty where the tests were not run.
func (v *Verifier) Try(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string, how Variant) (schemas.Verdict, Run, error) {
	verdict := schemas.Verdict{Status: schemas.VerifyError, Method: t.Tests.Method, FinalSHA: finalSHA}
	if t.Tests.Method == schemas.VerifyNone {
		verdict.Status, verdict.Reason = schemas.VerifyNotAppl, "nothing here can judge this task"
		return verdict, Run{}, nil
	}
	fail := func(err error) (schemas.Verdict, Run, error) {
		verdict, err := explain(verdict, err)
		return verdict, Run{}, err
	}
	spec, err := v.spec(ctx, t, tree)
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
		verdict.Reason = fmt.Sprintf("base and patch give the tree %s, not %s: the patch is not what the agent left behind", final, finalSHA)
		return verdict, Run{}, nil
	}
	return v.grade(ctx, t, spec, base, final, verdict, how)
}

// explain ends a verification that could not be made. A patch that does not
// apply and a task that cannot be judged are told in the verdict; anything else
// is an error of ours.
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

// graded is what a patch leaves to be judged.
type graded struct {
	tree     string // protected files as the base has them; not yet with the hidden tests
	hidden   hiddenTests
	restored []string
	warnings []string
	refused  []refusal
	leaves   bool               // programs of the base leave an interpreter without its exit handlers
	changes  []workspace.Change // of the tree against the base
	read     func(tree string) content
	err      error // of reading, set as read is used
}

// put puts the protected files back and lists what must not be in a patch.
func (v *Verifier) put(ctx context.Context, t schemas.Task, spec schemas.TestSpec, base, final string) (*graded, error) {
	store, g := v.cfg.Store, &graded{}
	baseFiles, err := store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	if g.hidden, err = v.hiddenTests(ctx, t, base); err != nil {
		return nil, err
	}
	g.read = func(tree string) content {
		return func(file string) string {
			text, _, err := store.ReadFile(ctx, tree, file)
			g.err = errors.Join(g.err, err)
			return string(text)
		}
	}
	changes, err := store.Changed(ctx, base, final)
	if err != nil {
		return nil, err
	}
	protected := protector(t, spec, baseFiles)
	r, err := v.layout(ctx, t, spec, base, baseFiles)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if why := r.doubt(c.Path); why != "" && c.Status != "A" && !protected(c.Path) {
			g.warnings = append(g.warnings, why)
		}
	}
	g.leaves = r.leaves
	ours := func(file string) bool { return g.hidden.files[file] || protected(file) || r.protects(file) }
	if g.tree, g.restored, err = store.Restore(ctx, base, final, ours); err != nil {
		return nil, err
	}
	if g.changes, err = store.Changed(ctx, base, g.tree); err != nil {
		return nil, err
	}
	files, err := store.Files(ctx, g.tree)
	if err != nil {
		return nil, err
	}
	g.refused = refusals(g.changes, files, g.read(base), g.read(g.tree), r.helperModules())
	return g, g.err
}

// layout is what the base tree of a task tells of its tests, read once.
func (v *Verifier) layout(ctx context.Context, t schemas.Task, spec schemas.TestSpec, base string, files []workspace.File) (*repository, error) {
	key := schemas.Hash([]any{base, t.Entrypoint, t.GoldPatch, spec})
	v.mu.Lock()
	known := v.layouts[key]
	v.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var gold []string
	if t.GoldPatch != "" {
		fixed, err := v.cfg.Store.Apply(ctx, base, []byte(t.GoldPatch))
		if _, odd := errors.AsType[*workspace.ApplyError](err); err != nil && !odd {
			return nil, err
		} else if !odd {
			changes, err := v.cfg.Store.Changed(ctx, base, fixed)
			if err != nil {
				return nil, err
			}
			for _, c := range changes {
				gold = append(gold, c.Path)
			}
		}
	}
	texts, err := v.cfg.Store.Texts(ctx, base, readByLayout)
	if err != nil {
		return nil, err
	}
	r := layout(t, spec, files, func(file string) string { return texts[file] }, gold)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.layouts) >= maxLayouts {
		clear(v.layouts)
	}
	v.layouts[key] = r
	return r, nil
}

// maxLayouts bounds how many layouts a verifier remembers.
const maxLayouts = 256

// Judged says what of a patch its judging is about: whether anything is left once
// protected files are back, and which files are refused. A patch of which nothing
// is left is judged as none is.
func (v *Verifier) Judged(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte) (left bool, refused []string, err error) {
	fail := func(err error) (bool, []string, error) { return false, nil, fmt.Errorf("verifying: %w", err) }
	spec, err := v.spec(ctx, t, tree)
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
	g, err := v.put(ctx, t, spec, base, final)
	if err != nil {
		return fail(err)
	}
	for _, r := range g.refused {
		refused = append(refused, r.path)
	}
	return g.tree != base, refused, nil
}

// deaths of fresh sandboxes in a row are the patch's doing, unless the driver
// knows of somebody else's; a lone one may be anybody's.
const deaths = 3

// grade puts the protected files back, refuses what must not be in a patch, and
// judges one run of the tests.
func (v *Verifier) grade(ctx context.Context, t schemas.Task, spec schemas.TestSpec, base, final string, verdict schemas.Verdict, how Variant) (schemas.Verdict, Run, error) {
	fail := func(err error) (schemas.Verdict, Run, error) {
		verdict, err := explain(verdict, err)
		return verdict, Run{}, err
	}
	g, err := v.put(ctx, t, spec, base, final)
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
	tested, inTheWay, err := g.hidden.place(ctx, v.cfg.Store, g.tree)
	if err != nil {
		return fail(err)
	}
	verdict.Restored = append(verdict.Restored, inTheWay...)
	died := func(err error) bool { return errors.Is(err, env.ErrSandboxDied) && ctx.Err() == nil }
	run, err := v.run(ctx, t, tested, how)
	for n := 1; died(err) && n < deaths; n++ {
		run, err = v.run(ctx, t, tested, how)
	}
	if how, ok := errors.AsType[*env.DiedError](err); died(err) && (!ok || how.DuringCommand) {
		return decide(verdict, "the sandbox died while the tests ran"), Run{}, nil
	}
	if err != nil {
		return fail(err)
	}
	if dug := digs(run.seen, g.changes, g.read(base)); dug != "" {
		run.tampered = append(run.tampered, dug)
	}
	if spec.Method == schemas.VerifyExitCode && len(run.Keys) > 0 && run.ended == 0 && !g.leaves {
		run.tampered = append(run.tampered, "the interpreter was left without its exit handlers, so its exit code proves nothing")
	}
	for _, file := range run.hooks {
		if slices.ContainsFunc(g.changes, func(c workspace.Change) bool { return c.Path == file }) || strings.HasPrefix(file, "<") {
			run.tampered = append(run.tampered, "hooks of the test runner lie in "+file+", which the patch changed")
		}
	}
	if g.err != nil {
		return fail(g.err)
	}
	j := judge(spec, run)
	verdict.F2PPassed, verdict.P2PPassed, verdict.Parsed = j.f2p, j.p2p, len(run.tests)
	verdict.Log, verdict.LogSHA256 = capLog(run.Output), schemas.HashBytes(run.Output)
	return decide(verdict, j.reason), run.public(), nil
}

// decide writes the word: resolved without a reason against it.
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

// capLog keeps head and tail of a long output.
func capLog(out []byte) string {
	text := string(out)
	if len(text) > MaxLog {
		cut := fmt.Sprintf("\n[... %d bytes cut ...]\n", len(text)-MaxLog)
		half := (MaxLog - len(cut)) / 2
		text = text[:half] + cut + text[len(text)-half:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// run places a tree in a fresh sandbox and runs the task's judging command there.
func (v *Verifier) run(ctx context.Context, t schemas.Task, tree string, how Variant) (out testRun, err error) {
	spec := v.cfg.Spec
	t.Entrypoint = cmp.Or(t.Tests.Command, t.Entrypoint)
	t.Workdir = cmp.Or(spec.Workdir, t.Workdir, schemas.DefaultWorkdir)
	spec.Workdir = t.Workdir
	spec.Image = cmp.Or(spec.Image, t.Image)
	spec.Python = cmp.Or(spec.Python, t.Python)
	sb, err := v.cfg.Driver.Start(ctx, spec)
	if err != nil {
		return out, fmt.Errorf("starting a %s sandbox: %w", v.cfg.Driver.Name(), err)
	}
	defer func() {
		closing := sb.Close(context.WithoutCancel(ctx))
		if err == nil && closing != nil && !errors.Is(closing, env.ErrSandboxDied) {
			err = fmt.Errorf("closing sandbox: %w", closing)
		}
	}()
	t.Workdir = env.WorkdirOf(sb, t.Workdir)
	err = env.Stream(
		func(w io.Writer) error { return v.cfg.Store.Export(ctx, tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, t.Workdir, r) },
	)
	if err != nil {
		return out, fmt.Errorf("placing the graded tree: %w", err)
	}
	return runTests(ctx, sb, t, v.cfg.Timeout, how)
}
