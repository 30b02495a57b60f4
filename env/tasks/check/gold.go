package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// checkGoldPatch refuses a gold patch that cannot fix anything, before any test runs.
func (c *checker) checkGoldPatch(ctx context.Context) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	final, err := c.Store.Apply(ctx, c.base, []byte(c.task.GoldPatch))
	if applyErr, ok := errors.AsType[*workspace.ApplyError](err); ok {
		return finding{GoldFails, "it does not apply: " + applyErr.Detail}, nil
	}
	if err != nil {
		return finding{}, err
	}
	changes, err := c.Store.Changed(ctx, c.base, final)
	if err != nil {
		return finding{}, err
	}
	if len(changes) == 0 {
		return finding{GoldFails, "it changes no file"}, nil
	}
	protected, err := c.v.Protected(ctx, c.task, c.task.Tests, c.tree)
	if err != nil {
		return finding{}, err
	}
	var names []string
	for _, change := range changes {
		if !slices.Contains(protected, change.Path) {
			return finding{}, nil
		}
		names = append(names, change.Path)
	}
	return finding{GoldFails, fmt.Sprintf("it changes only tests and their settings (%s), which the verifier restores before it runs the tests",
		strings.Join(names[:min(len(names), 3)], ", "))}, nil
}
