package verify

import (
	"context"
	"errors"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// hiddenTests are the files that a task's hidden tests change or add. They exist only in the sandbox
// of a verifier. They replace a file, directory or link that a patch has created at the same path.
type hiddenTests struct {
	tree  string          // the base tree with the hidden tests
	files map[string]bool // files that the hidden tests change, add or delete
}

// findHidden applies the hidden tests of a task to its base tree.
func findHidden(ctx context.Context, store *workspace.Store, t schemas.Task, base string) (hiddenTests, error) {
	h := hiddenTests{tree: base}
	if t.Tests.Patch == "" {
		return h, nil
	}
	var err error
	h.tree, err = store.Apply(ctx, base, []byte(t.Tests.Patch))
	if e, ok := errors.AsType[*workspace.ApplyError](err); ok {
		return h, &TaskError{t.InstanceID, ErrHiddenTests, e.Detail, "make tests.patch against the task's repository"}
	}
	if err != nil {
		return h, err
	}
	changes, err := store.Changed(ctx, base, h.tree)
	h.files = map[string]bool{}
	for _, c := range changes {
		h.files[c.Path] = true
	}
	return h, err
}

// place returns a tree with the hidden tests added, and the other files that it had to remove for them.
func (h hiddenTests) place(ctx context.Context, store *workspace.Store, tree string) (tested string, removed []string, err error) {
	if len(h.files) == 0 {
		return tree, nil, nil
	}
	tested, changed, err := store.Restore(ctx, h.tree, tree, func(file string) bool { return h.files[file] })
	for _, file := range changed {
		if !h.files[file] {
			removed = append(removed, file)
		}
	}
	return tested, removed, err
}
