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

// reversed checks that reverting the gold patch after applying it restores the repository byte
// for byte.
func (c *checker) reversed(ctx context.Context) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	final, err := c.Store.Apply(ctx, c.base, []byte(c.task.GoldPatch))
	if err != nil {
		return finding{}, err
	}
	back, err := c.Store.Reverse(ctx, final, []byte(c.task.GoldPatch))
	if unfit, ok := errors.AsType[*workspace.ApplyError](err); ok {
		return finding{GoldInexact, "it cannot be reverted: " + unfit.Detail}, nil
	}
	if err == nil && back != c.base {
		return finding{GoldInexact, fmt.Sprintf("reverting it gives the tree %s, not %s", back, c.base)}, nil
	}
	return finding{}, err
}

// cheated reports the finding Unprotected if a patch that fixes nothing resolves the task.
func (c *checker) cheated(ctx context.Context) (finding, error) {
	how, err := Cheated(ctx, c.v, c.Store, c.task, c.tree)
	if err != nil || how == "" {
		return finding{}, err
	}
	return finding{Unprotected, how + " resolves the task"}, nil
}

// Cheated tries patches that change only tests or their configuration. It describes the first one
// that resolves the task, and returns "" if none does. The task must name its tests, and the empty
// patch must not resolve it. Cheated skips a patch that the verifier refuses or reverts completely:
// after a complete revert, the verdict is that of the empty patch.
func Cheated(ctx context.Context, v *verify.Verifier, store *workspace.Store, t schemas.Task, tree env.Tree) (string, error) {
	return CheatedBy(ctx, v, store, t, tree, Cheats)
}

// Cheats are the kinds of patches that Cheated tries.
var Cheats = []string{changesTests, deletesTests, reportsAll, hidesFailing, deselectsFailing}

const (
	changesTests     = "a patch that only changes tests"
	deletesTests     = "a patch that deletes the tests"
	reportsAll       = "a conftest.py that reports every test as passed"
	hidesFailing     = "a conftest.py that hides the failing tests"
	deselectsFailing = "a setting that leaves the failing tests out"
)

// CheatedBy is Cheated for some of the kinds of patches.
func CheatedBy(ctx context.Context, v *verify.Verifier, store *workspace.Store, t schemas.Task, tree env.Tree, kinds []string) (string, error) {
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
		left, refused, err := v.Graded(ctx, t, tree, patch)
		if err != nil {
			return "", err
		}
		if !left || len(refused) > 0 {
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

// cheats returns a patch that replaces the tests of a task with tests that assert nothing, and one
// that deletes them. For pytest it adds a conftest.py that reports every test as passed, one that
// hides the failing tests, and settings that deselect them.
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
	weak, gone, dirs := map[string][]byte{}, map[string][]byte{}, map[string]bool{"": true}
	for file, tests := range testFiles(t.Tests, files) {
		weak[file], gone[file], dirs[path.Dir(file)] = stub(tests), nil, true
	}
	if len(weak) > 0 {
		list = append(list, cheat{changesTests, weak}, cheat{deletesTests, gone})
	}
	if !strings.Contains(cmp.Or(t.Tests.Command, t.Entrypoint), "pytest") && t.Tests.Method != schemas.VerifyPytest {
		return list, nil
	}
	passed, hidden := map[string][]byte{}, map[string][]byte{}
	for dir := range dirs {
		name := path.Join(dir, "conftest.py")
		passed[name] = []byte(text[name] + reportsPassed)
		hidden[name] = fmt.Appendf(nil, hidesTests, text[name], pythonList(t.Tests.FailToPass))
	}
	list = append(list, cheat{reportsAll, passed})
	if len(t.Tests.FailToPass) == 0 {
		return list, nil
	}
	return append(list, cheat{hidesFailing, hidden},
		cheat{deselectsFailing, deselect(text, t.Tests.FailToPass)}), nil
}

// Python code for a conftest.py. hidesTests is a format: the existing content comes first, then a
// list of test ids.
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

// settingsFiles are the files that can configure pytest, in the order in which pytest looks for
// them. It reads only the first one that has a section for it.
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
	words := strings.ReplaceAll(b.String(), "$", "$$")
	for _, name := range settingsFiles {
		switch at := section.FindStringIndex(text[name]); {
		case at == nil:
		case options.MatchString(text[name]):
			return map[string][]byte{name: options.ReplaceAll([]byte(text[name]), []byte("${1}${2}"+words))}
		case name == "pyproject.toml":
			return map[string][]byte{name: []byte(text[name][:at[1]] + "addopts = '" + b.String() + "'\n" + text[name][at[1]:])}
		default:
			return map[string][]byte{name: []byte(text[name][:at[1]] + "addopts = " + b.String() + "\n" + text[name][at[1]:])}
		}
	}
	return map[string][]byte{"pytest.ini": []byte("[pytest]\naddopts = " + b.String() + "\n")}
}
