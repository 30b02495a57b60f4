package verify

import (
	"context"
	"errors"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// candidate is the tree that results from a patch, prepared for grading.
type candidate struct {
	tree       string // with the protected files of the base tree, without the hidden tests
	hidden     hiddenTests
	restored   []string
	warnings   []string
	refused    []refusal
	exitsEarly bool               // the base tree has code that ends an interpreter without running its exit handlers
	changes    []workspace.Change // differences between the base tree and tree
	read       func(tree string) textFunc
	err        error // the errors of the functions that read returns
}

// prepare restores the protected files in the tree final, and finds the files that a patch must not
// contain. r is the layout of the base tree.
func prepare(ctx context.Context, store *workspace.Store, r *repoLayout, t schemas.Task, spec schemas.TestSpec, base, final string) (*candidate, error) {
	g := &candidate{exitsEarly: r.exitsEarly}
	baseFiles, err := store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	if g.hidden, err = findHidden(ctx, store, t, base); err != nil {
		return nil, err
	}
	g.read = func(tree string) textFunc {
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
	protected := newProtector(t, spec, baseFiles)
	for _, c := range changes {
		if why := r.doubtReason(c.Path); why != "" && c.Status != "A" && !protected(c.Path) {
			g.warnings = append(g.warnings, why)
		}
	}
	fromBase := func(file string) bool { return g.hidden.files[file] || protected(file) || r.protects(file) }
	if g.tree, g.restored, err = store.Restore(ctx, base, final, fromBase); err != nil {
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
