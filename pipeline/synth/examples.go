package synth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/env"
)

// exampleEnd is how a piece of code ends (python/tracesmith_examples.py).
type exampleEnd struct {
	Error string // type of the exception; "" = none
	Shown string // the value of the last expression, or the message of the exception
}

// checkScenes removes the code of scenes that do not show the failure when it runs without the test, for example because
// an earlier statement of the test or another test has changed the state of the program. It adds the values that the
// other scenes show, if the failure has none.
func (w *worker) checkScenes(ctx context.Context, t *Trial, files map[string]string) error {
	var codes []string
	var at []int
	for i, f := range t.Failures {
		if s := summarize(f); s.code != "" {
			codes, at = append(codes, s.code), append(at, i)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	buggy, err := w.bench.runExamples(ctx, files, codes)
	if err != nil {
		return err
	}
	healthy, err := w.bench.runExamples(ctx, nil, codes)
	if err != nil {
		return err
	}
	t.Failures = slices.Clone(t.Failures)
	for k, i := range at {
		f := &t.Failures[i]
		switch {
		case !f.isShownBy(buggy[k], healthy[k]):
			f.Scene = &Scene{Relation: f.Scene.Relation, Raises: f.Scene.Raises}
		case buggy[k].Error == "":
			f.addValues(buggy[k].Shown)
		}
	}
	return nil
}

// addValues sets the values of a failed comparison to the value that its scene shows and the one that the test names,
// if the test runner did not report them and they fit into a sentence.
func (f *Failure) addValues(shown string) {
	s := f.Scene
	if s.Relation != relationEqual || f.Left != "" || s.Want == "" || s.Want == shown || !f.asserts() || max(len(shown), len(s.Want)) > maxValue {
		return
	}
	if f.Left, f.Right = shown, s.Want; s.Swapped {
		f.Left, f.Right = f.Right, f.Left
	}
}

// isShownBy reports whether an example that ends like this with and without the bug shows a failure. An example that
// cannot import the program says nothing.
func (f Failure) isShownBy(buggy, healthy *exampleEnd) bool {
	if buggy == nil || healthy == nil {
		return false
	}
	if slices.Contains([]string{"ImportError", "ModuleNotFoundError"}, healthy.Error) {
		return true
	}
	want := f.Type
	if f.asserts() {
		want = ""
	}
	return buggy.Error == want && *buggy != *healthy
}

// runExamples runs pieces of code, each in a process of its own, in a tree with some files replaced. The end of one that
// takes too long or kills its process is nil.
func (b *bench) runExamples(ctx context.Context, files map[string]string, codes []string) (ends []*exampleEnd, err error) {
	tree, err := b.replaced(files)
	if err != nil {
		return nil, err
	}
	sb, err := b.start(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSandbox(ctx, sb)) }()
	line, err := json.Marshal(codes)
	if err != nil {
		return nil, err
	}
	// The compiled code in the tree is that of the healthy files.
	vars := []string{"PYTHONHASHSEED=" + firstSeed, "PYTHONPYCACHEPREFIX=" + scratch(sb) + "/compiled"}
	for name, value := range b.command.env {
		vars = append(vars, name+"="+value)
	}
	res, err := sb.Run(ctx, env.Command{
		Args: []string{"python3", "-B", scratch(sb) + "/tracesmith_examples.py", string(line)}, Dir: b.workdir(sb), Env: vars,
		Timeout: helperTimeout, MaxOutput: maxAnswer,
	})
	ends = make([]*exampleEnd, len(codes))
	if _, died := errors.AsType[*env.DiedError](err); err != nil && !died {
		return nil, fmt.Errorf("running examples: %w", err)
	}
	if json.Unmarshal(res.Output, &ends) != nil || len(ends) != len(codes) {
		return make([]*exampleEnd, len(codes)), nil
	}
	for _, end := range ends {
		if end != nil {
			end.Shown = masked(end.Shown) // addresses differ between any two runs
		}
	}
	return ends, nil
}
