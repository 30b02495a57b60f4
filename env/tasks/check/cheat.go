package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// checkReversal checks that applying and reverting the gold patch restores the repository byte for byte.
func (c *checker) checkReversal(ctx context.Context) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	final, err := c.Store.Apply(ctx, c.base, []byte(c.task.GoldPatch))
	if err != nil {
		return finding{}, err
	}
	reverted, err := c.Store.Reverse(ctx, final, []byte(c.task.GoldPatch))
	if applyErr, ok := errors.AsType[*workspace.ApplyError](err); ok {
		return finding{GoldInexact, "it cannot be reverted: " + applyErr.Detail}, nil
	}
	if err == nil && reverted != c.base {
		return finding{GoldInexact, fmt.Sprintf("reverting it gives the tree %s, not %s", reverted, c.base)}, nil
	}
	return finding{}, err
}

// checkCheats returns the finding Unprotected if a patch that fixes nothing resolves the task.
func (c *checker) checkCheats(ctx context.Context) (finding, error) {
	cheat, err := FindCheat(ctx, c.v, c.Store, c.task, c.tree)
	if err != nil || cheat == "" {
		return finding{}, err
	}
	return finding{Unprotected, cheat + " resolves the task"}, nil
}

// FindCheat tries patches that change only tests or their configuration. It returns a description of the first one that
// resolves the task, or "" if none does. The task must name its tests, and the empty patch must not resolve it.
// FindCheat skips patches that the verifier refuses, and patches that it reverts completely, because their verdict is
// that of the empty patch.
func FindCheat(ctx context.Context, v *verify.Verifier, store *workspace.Store, t schemas.Task, tree env.Tree) (string, error) {
	return FindCheatOf(ctx, v, store, t, tree, Cheats)
}

// Cheats are the kinds of patches that FindCheat tries.
var Cheats = []string{changesTests, deletesTests, reportsAll, hidesFailing, deselectsFailing}

const (
	changesTests     = "a patch that only changes tests"
	deletesTests     = "a patch that deletes the tests"
	reportsAll       = "a conftest.py that reports every test as passed"
	hidesFailing     = "a conftest.py that hides the failing tests"
	deselectsFailing = "a setting that leaves the failing tests out"
)

// FindCheatOf is FindCheat for some of the kinds of patches.
func FindCheatOf(ctx context.Context, v *verify.Verifier, store *workspace.Store, t schemas.Task, tree env.Tree, kinds []string) (string, error) {
	base, err := store.Base(ctx, tree)
	if err != nil {
		return "", err
	}
	list, err := cheats(ctx, store, t, base)
	if err != nil {
		return "", err
	}
	for _, c := range list {
		if !slices.Contains(kinds, c.what) {
			continue
		}
		final, err := store.Edit(ctx, base, c.files)
		if err != nil {
			return "", err
		}
		patch, err := store.DiffTrees(ctx, base, final)
		if err != nil {
			return "", err
		}
		changed, refused, err := v.EffectOf(ctx, t, tree, patch)
		if err != nil {
			return "", err
		}
		if !changed || len(refused) > 0 {
			continue
		}
		verdict, err := v.Verify(ctx, t, tree, patch, final)
		if err != nil {
			return "", err
		}
		if resolved(verdict) {
			return fmt.Sprintf("%s (%s)", c.what, strings.Join(slices.Sorted(maps.Keys(c.files)), ", ")), nil
		}
	}
	return "", nil
}

// cheat is a patch that fixes nothing. files maps each changed file to its new content, or to nil
// if the patch deletes it.
type cheat struct {
	what  string
	files map[string][]byte
}

// cheats returns a patch that replaces the tests of a task with tests that assert nothing, and one that deletes them.
// For tasks that use pytest it also returns patches with a conftest.py that reports every test as passed, with one that
// hides the failing tests, and with settings that deselect them.
func cheats(ctx context.Context, store *workspace.Store, t schemas.Task, base string) ([]cheat, error) {
	files, err := store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	text := map[string]string{}
	for _, f := range files {
		if name := path.Base(f.Path); name == "conftest.py" || slices.Contains(settingsFiles, name) {
			content, _, err := store.ReadFile(ctx, base, f.Path)
			if err != nil {
				return nil, err
			}
			text[f.Path] = string(content)
		}
	}
	var list []cheat
	stubs, deleted, dirs := map[string][]byte{}, map[string][]byte{}, map[string]bool{"": true}
	for file, tests := range testFiles(t.Tests, files) {
		stubs[file], deleted[file], dirs[path.Dir(file)] = stub(tests), nil, true
	}
	if len(stubs) > 0 {
		list = append(list, cheat{changesTests, stubs}, cheat{deletesTests, deleted})
	}
	if !strings.Contains(cmp.Or(t.Tests.Command, t.Entrypoint), "pytest") && t.Tests.Method != schemas.VerifyPytest {
		return list, nil
	}
	allPass, hidden := map[string][]byte{}, map[string][]byte{}
	for dir := range dirs {
		name := path.Join(dir, "conftest.py")
		allPass[name] = []byte(text[name] + reportsPassed)
		hidden[name] = fmt.Appendf(nil, hidesTests, text[name], pythonList(t.Tests.FailToPass))
	}
	list = append(list, cheat{reportsAll, allPass})
	if len(t.Tests.FailToPass) == 0 {
		return list, nil
	}
	return append(list, cheat{hidesFailing, hidden},
		cheat{deselectsFailing, deselect(text, t.Tests.FailToPass)}), nil
}

// Python code for a conftest.py. hidesTests is a format string for the existing content of the file and a list of test
// ids.
const (
	reportsPassed = `

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    (yield).get_result().outcome = "passed"
`
	hidesTests = `%s

def pytest_collection_modifyitems(items):
    items[:] = [i for i in items if i.nodeid not in %s]
`
)

// settingsFiles are the files that can configure pytest, in the order in which pytest looks for them. Pytest reads only
// the first one that has a section for it.
var settingsFiles = []string{"pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}

var (
	section = regexp.MustCompile(`(?m)^\[(tool\.pytest\.ini_options|tool:pytest|pytest)\][ \t]*\n`)
	options = regexp.MustCompile(`(?m)^(addopts[ \t]*=[ \t]*)(["']?)`)
)

// deselect adds a --deselect option for each test to the existing settings of pytest, or to a new
// pytest.ini. It returns the changed file.
func deselect(text map[string]string, ids []string) map[string][]byte {
	var b strings.Builder
	for _, id := range ids {
		id, _, _ = strings.Cut(id, "[") // parameters may need quotes, so deselect all cases of the test
		b.WriteString("--deselect=" + id + " ")
	}
	replacement := strings.ReplaceAll(b.String(), "$", "$$")
	for _, name := range settingsFiles {
		switch at := section.FindStringIndex(text[name]); {
		case at == nil:
		case options.MatchString(text[name]):
			return map[string][]byte{name: options.ReplaceAll([]byte(text[name]), []byte("${1}${2}"+replacement))}
		case name == "pyproject.toml":
			return map[string][]byte{name: []byte(text[name][:at[1]] + "addopts = '" + b.String() + "'\n" + text[name][at[1]:])}
		default:
			return map[string][]byte{name: []byte(text[name][:at[1]] + "addopts = " + b.String() + "\n" + text[name][at[1]:])}
		}
	}
	return map[string][]byte{"pytest.ini": []byte("[pytest]\naddopts = " + b.String() + "\n")}
}
