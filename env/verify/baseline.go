package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// makeBaseline implements Verifier.Baseline.
func makeBaseline(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree) (schemas.TestSpec, error) {
	base, err := cfg.Store.Base(ctx, tree)
	if err != nil {
		return schemas.TestSpec{}, err
	}
	hidden, err := findHidden(ctx, cfg.Store, t, base)
	if err != nil {
		return schemas.TestSpec{}, err
	}
	before, err := runFresh(ctx, cfg, t, hidden.tree, Variant{})
	if err != nil {
		return schemas.TestSpec{}, fmt.Errorf("running the tests of task %s: %w", t.InstanceID, err)
	}
	if t.GoldPatch == "" {
		return baseline(t, before)
	}
	gold, err := cfg.Store.Apply(ctx, base, []byte(t.GoldPatch))
	if err != nil {
		return schemas.TestSpec{}, &TaskError{t.InstanceID, ErrGoldFails, err.Error(), "make the gold patch against the task's repository"}
	}
	if gold, _, err = hidden.place(ctx, cfg.Store, gold); err != nil {
		return schemas.TestSpec{}, err
	}
	after, err := runFresh(ctx, cfg, t, gold, Variant{})
	if err != nil {
		return schemas.TestSpec{}, fmt.Errorf("running the tests of task %s with its gold patch: %w", t.InstanceID, err)
	}
	return goldBaseline(t, before, after)
}

// checkUsable returns an error if test lists cannot be made from a run.
func checkUsable(t schemas.Task, r testRun) *TaskError {
	fail := func(kind error, detail, remedy string) *TaskError {
		return &TaskError{t.InstanceID, kind, detail, remedy}
	}
	switch {
	case r.TimedOut:
		return fail(ErrTooSlow, "", "make the entrypoint run fewer tests, or raise the timeout")
	case r.Limit != "":
		return fail(ErrUntrusted, "limit of "+r.Limit, "raise the sandbox's limit, or make the entrypoint run fewer tests")
	case r.ExitCode == 126 || r.ExitCode == 127:
		return fail(ErrNotCollected, Cause(r.Output), "correct the entrypoint, or install what it needs with setup commands")
	case len(r.tampered) > 0:
		return fail(ErrUntrusted, r.tampered[0], "remove what changes or replaces the test runner, or choose an entrypoint that starts one test runner per command")
	case r.runners > 0 && len(r.tests) == 0 && len(r.uncollected) == 0 && !r.unfinished:
		return fail(ErrNoTests, "", "add a test that shows the bug, or correct the entrypoint "+fmt.Sprintf("%q", t.Entrypoint))
	case r.runners == 0 && t.Tests.Method != "" && t.Tests.Method != schemas.VerifyExitCode:
		return fail(ErrNotCollected, Cause(r.Output), t.Tests.Method+" did not run: correct the entrypoint, or install the runner with setup commands")
	case len(r.duplicates) > 0:
		return fail(ErrUntrusted, r.duplicates[0]+" ran twice", "make the entrypoint run each test once")
	}
	return nil
}

// baseline makes the test lists of a task without a gold patch from a run on the base tree.
func baseline(t schemas.Task, before testRun) (schemas.TestSpec, error) {
	if e := checkUsable(t, before); e != nil {
		return schemas.TestSpec{}, e
	}
	spec := t.Tests
	spec.Method, spec.FailToPass, spec.PassToPass = schemas.VerifyExitCode, nil, nil
	nothingToFix := &TaskError{t.InstanceID, ErrNothingToFix, "all tests pass already", "give a repository whose tests fail because of the bug"}
	if before.runners == 0 {
		if before.ExitCode == 0 {
			return schemas.TestSpec{}, nothingToFix
		}
		return spec, nil
	}
	if before.unfinished || len(before.uncollected) > 0 {
		detail := strings.Join(before.uncollected[:min(3, len(before.uncollected))], ", ")
		if detail != "" {
			detail += ": "
		}
		return schemas.TestSpec{}, &TaskError{t.InstanceID, ErrNotCollected, detail + Cause(before.Output),
			"make the tests importable, list fail_to_pass and pass_to_pass, or give a gold patch"}
	}
	spec.Method = before.method()
	for _, id := range slices.Sorted(maps.Keys(before.tests)) {
		switch before.tests[id] {
		case "passed":
			spec.PassToPass = append(spec.PassToPass, id)
		case "failed", "error":
			spec.FailToPass = append(spec.FailToPass, id)
		}
	}
	if len(spec.FailToPass) == 0 {
		return schemas.TestSpec{}, nothingToFix
	}
	return spec, nil
}

// goldBaseline makes the test lists of a task from runs without (before) and with (after) its gold patch.
func goldBaseline(t schemas.Task, before, after testRun) (schemas.TestSpec, error) {
	for _, r := range []testRun{before, after} {
		// Unlike baseline, accept tests that cannot be collected: the bug may be the cause.
		if e := checkUsable(t, r); e != nil {
			return schemas.TestSpec{}, e
		}
	}
	spec := t.Tests
	spec.Method, spec.FailToPass, spec.PassToPass = schemas.VerifyExitCode, nil, nil
	goldFails := &TaskError{t.InstanceID, ErrGoldFails, "", "correct the gold patch: a test must fail without it and pass with it"}
	if after.runners == 0 {
		switch {
		case before.ExitCode == 0:
			return spec, &TaskError{t.InstanceID, ErrNothingToFix, "the entrypoint ends with exit code 0 already", "give an entrypoint that fails because of the bug"}
		case after.ExitCode != 0:
			return schemas.TestSpec{}, goldFails
		}
		return spec, nil
	}
	spec.Method = after.method()
	for _, id := range slices.Sorted(maps.Keys(after.tests)) {
		switch {
		case after.tests[id] != "passed":
		case before.tests[id] == "passed":
			spec.PassToPass = append(spec.PassToPass, id)
		default:
			spec.FailToPass = append(spec.FailToPass, id)
		}
	}
	failing := len(before.uncollected) > 0 || slices.ContainsFunc(slices.Sorted(maps.Keys(before.tests)), func(id string) bool {
		return before.tests[id] == "failed" || before.tests[id] == "error"
	})
	switch {
	case len(spec.FailToPass) > 0:
		return spec, nil
	case !failing:
		return schemas.TestSpec{}, &TaskError{t.InstanceID, ErrNothingToFix, "all tests pass already", "give a repository whose tests fail because of the bug"}
	}
	return schemas.TestSpec{}, goldFails
}
