package verify

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

const hiddenID = "tests/unseen/test_more.py::test_three"

// hiddenTask returns the fixture and a task whose hidden patch adds a failing test in a new directory
// and a passing test in an existing file.
func hiddenTask(t *testing.T, v *Verifier) (project, schemas.Task) {
	t.Helper()
	base := fixture(t)
	tests := base.edited("tests/unseen/test_more.py", "from shop.prices import total\n\ndef test_three():\n    assert total([(1, 2), (1, 4)]) == 6\n")
	tests = tests.edited("tests/test_prices.py", base.text(t, "tests/test_prices.py")+"\ndef test_added():\n    assert True\n")
	patch, _ := patchTo(t, v, base, tests)
	task := task(base, "python3 -m pytest -q tests/test_basket.py", schemas.TestSpec{
		Method: schemas.VerifyPytest, FailToPass: []string{hiddenID, "tests/test_prices.py::test_added"},
		Patch: string(patch), Command: "python3 -m pytest -q tests/test_prices.py tests/unseen/test_more.py",
	})
	task.Visibility = schemas.TestsHidden
	return base, task
}

// entry is a file, directory or link that an agent creates.
type entry struct {
	name, text string
	kind       byte
}

// agentPatch returns the patch of an agent that ends with the files of a project, without those whose paths
// begin with removed (unless it is ""), and with added.
func agentPatch(t *testing.T, v *Verifier, base, final project, removed string, added ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	for _, f := range final {
		if removed == "" || !strings.HasPrefix(f.Name, removed) {
			added = append(added, entry{f.Name, string(f.Data), tar.TypeReg})
		}
	}
	for _, e := range added {
		head := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: 0o644, Size: int64(len(e.text))}
		if e.kind == tar.TypeSymlink {
			head.Linkname, head.Size = e.text, 0
		}
		if err := out.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if head.Size > 0 {
			if _, err := out.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	patch, _, _, err := v.cfg.Store.Diff(t.Context(), base, &buf)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// The task's hidden tests decide even if the agent has created other files at their paths.
func TestHostileFilesDoNotReplaceHiddenTests(t *testing.T) {
	v := verifier(t)
	base, task := hiddenTask(t, v)
	pass := "def test_three():\n    pass\ndef test_added():\n    pass\n"
	cases := map[string]struct {
		removed string
		added   []entry
	}{
		"nothing":               {},
		"a file of that name":   {"", []entry{{"tests/unseen/test_more.py", pass, tar.TypeReg}}},
		"a directory":           {"", []entry{{"tests/unseen/test_more.py/x.py", "", tar.TypeReg}}},
		"a link":                {"", []entry{{"tests/unseen/test_more.py", "../test_basket.py", tar.TypeSymlink}}},
		"a file as directory":   {"", []entry{{"tests/unseen", "x", tar.TypeReg}}},
		"a link as directory":   {"", []entry{{"tests/unseen", "/tmp", tar.TypeSymlink}}},
		"the tests deleted":     {"tests/", nil},
		"a link to all tests":   {"tests/", []entry{{"elsewhere/test_prices.py", pass, tar.TypeReg}, {"tests", "elsewhere", tar.TypeSymlink}}},
		"an edited listed test": {"tests/test_prices.py", []entry{{"tests/test_prices.py", pass, tar.TypeReg}}},
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if !isChosen(t, i) {
			continue
		}
		agent := cases[name]
		t.Run(name, func(t *testing.T) {
			for fix, final := range map[bool]project{true: honest(t), false: base} {
				if testing.Short() && fix && !slices.Contains([]string{"nothing", "the tests deleted", "a link as directory"}, name) {
					continue // make full tests all cases with the fix
				}
				got, err := v.Verify(t.Context(), task, base, agentPatch(t, v, base, final, agent.removed, agent.added...), "")
				want := map[bool]string{true: schemas.VerifiedPass, false: schemas.VerifiedFail}[fix]
				if err != nil || got.Status != want {
					t.Errorf("fixed: %v: %s (%s), %v\n%s", fix, got.Status, got.Reason, err, got.Log)
				}
				if !fix && got.F2PPassed != 1 { // test_added passes either way
					t.Errorf("%d of the hidden tests pass without a fix, want 1: %s", got.F2PPassed, got.Reason)
				}
			}
		})
	}
}

// The agent's sandbox and its evaluations do not contain the hidden tests.
func TestHiddenTestsAreNotInTheAgentsSandbox(t *testing.T) {
	v := verifier(t)
	base, task := hiddenTask(t, v)
	public := task.Public()
	if s := schemas.Hash(public); s == schemas.Hash(task) || strings.Contains(string(mustBytes(schemas.CanonicalJSON(public))), "unseen") {
		t.Fatalf("the public task names the hidden tests: %s", mustBytes(schemas.CanonicalJSON(public)))
	}
	withSandbox(t, v, base, func(sb env.Sandbox) {
		report, err := Eval(t.Context(), sb, public, 0)
		if err != nil || len(report.Tests) != 2 || report.Max != 2 {
			t.Errorf("the evaluation reports %v of %v, %v", report.Tests, report.Max, err)
		}
		_, _, err = sb.ReadFile(t.Context(), "/testbed/tests/unseen/test_more.py", 10)
		if !errors.Is(err, env.ErrNotExist) {
			t.Errorf("the hidden test exists after an evaluation: %v", err)
		}
	})
}

func mustBytes(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// withSandbox calls fn with a new sandbox that contains the project.
func withSandbox(t *testing.T, v *Verifier, p project, fn func(env.Sandbox)) {
	t.Helper()
	sb, err := v.cfg.Driver.Start(t.Context(), env.SandboxSpec{Workdir: schemas.DefaultWorkdir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var buf bytes.Buffer
	if err := p.WriteTar(&buf); err != nil {
		t.Fatal(err)
	}
	if err := sb.TarIn(t.Context(), schemas.DefaultWorkdir, &buf); err != nil {
		t.Fatal(err)
	}
	fn(sb)
}

func TestHiddenTestsThatDoNotApplyAreATaskError(t *testing.T) {
	v := verifier(t)
	base, task := hiddenTask(t, v)
	task.Tests.Patch = "--- a/tests/none.py\n+++ b/tests/none.py\n@@ -1 +1 @@\n-a\n+b\n"
	got, err := v.Verify(t.Context(), task, base, nil, "")
	if err != nil || got.Status != schemas.VerifyError || !strings.Contains(got.Reason, "tests/none.py") || !strings.Contains(got.Reason, ErrHiddenTests.Error()) {
		t.Errorf("%+v, %v", got, err)
	}
	task.Tests.FailToPass = nil
	if _, err := v.Baseline(t.Context(), task, base); !errors.Is(err, ErrHiddenTests) {
		t.Errorf("baseline: %v", err)
	}
}

// If a task lists no tests, the baseline runs the hidden tests to find the lists.
func TestBaselineRunsTheHiddenTests(t *testing.T) {
	v := verifier(t)
	base, task := hiddenTask(t, v)
	task.Tests.FailToPass = nil
	gold, _ := patchTo(t, v, base, honest(t))
	task.GoldPatch = string(gold)
	spec, err := v.Baseline(t.Context(), task, base)
	if err != nil || !strings.Contains(strings.Join(spec.FailToPass, " "), hiddenID) || spec.Patch == "" || spec.Command == "" {
		t.Errorf("%+v, %v", spec, err)
	}
}

func TestTasksWithoutAVerificationMethod(t *testing.T) {
	v, base := verifier(t), fixture(t)
	got, err := v.Verify(t.Context(), task(base, "true", schemas.TestSpec{Method: schemas.VerifyNone}), base, nil, "")
	if err != nil || got.Resolved != nil || got.Status != schemas.VerifyNotApplicable {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestExpectedMapDecides(t *testing.T) {
	run := func(tests map[string]string, exit int) testRun {
		return testRun{Result: env.Result{ExitCode: exit}, results: results{tests: tests, runners: 1, exit: exit}}
	}
	want := map[string]string{"T.test_a": "passed", "test_b[x - y]": "failed"}
	ran := func(more ...string) map[string]string {
		m := map[string]string{"t/test_1.py::T::test_a": "passed", "t/test_1.py::test_b[x - y]": "failed"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		tests  map[string]string
		exit   int
		reason string
	}{
		"exactly":                      {ran(), 1, ""},
		"another test fails":           {ran("t/test_1.py::test_c", "failed"), 1, "test_c ran, and is not"},
		"another test passes":          {ran("t/test_1.py::test_c", "passed"), 1, "test_c ran, and is not"},
		"another is expected to fail":  {ran("t/test_1.py::test_c", "xfailed"), 1, ""},
		"another passed unexpectedly":  {ran("t/test_1.py::test_c", "xpassed"), 1, ""},
		"another is skipped":           {ran("t/test_1.py::test_c", "skipped"), 1, ""},
		"expected failure is a pass":   {ran("t/test_1.py::T::test_a", "xfailed"), 1, ""},
		"one must fail and passes":     {ran("t/test_1.py::test_b[x - y]", "passed"), 0, "test_b[x - y] passed, not failed"},
		"one must pass and is skipped": {ran("t/test_1.py::T::test_a", "skipped"), 1, "T.test_a skipped, not passed"},
		"one is missing":               {map[string]string{"t/test_1.py::T::test_a": "passed"}, 0, "test_b[x - y] did not run"},
		"the same name fails elsewhere": {
			ran("t/test_2.py::T::test_a", "failed"), 1, "T.test_a failed, not passed"},
		"unclean end": {ran(), 3, "unexpected exit"},
	} {
		a := assess(schemas.TestSpec{Method: schemas.VerifyPytest, Expected: want}, run(c.tests, c.exit))
		if c.reason == "" && a.reason != "" || !strings.Contains(a.reason, c.reason) {
			t.Errorf("%s: %q, want %q", name, a.reason, c.reason)
		}
	}
}

// Benchmarks abbreviate the IDs of tests (see aliases), or name a test by its docstring. If several tests match, the
// worst result counts.
func TestAbbreviatedTestIDs(t *testing.T) {
	c := newTestIndex(map[string]string{
		"a.py::T::test_x[1]": "passed", "b.py::test_x": "failed", "c.py::test_x": "passed",
		"e.py::test_p[/testbed/x/f.py]": "passed", "d.py::test_y[a b]": "passed", "d.py::test_y[a c]": "skipped", "mod.T.test_z": "passed", "mod.T.test_w": "failed",
	}, map[string]string{"mod.T.test_z": "A page has a footer.", "mod.T.test_w": "A page has a footer."})
	got := map[string]string{}
	for _, id := range []string{"a.py::T::test_x[1]", "T.test_x[1]", "test_x", "d.py::test_y[a", "mod.T.test_z", "test_z", "x", "d.py::test_y", "e.py::test_p[/f.py]", "A page has a footer.", "A page"} {
		got[id], _ = c.status(id)
	}
	want := map[string]string{"a.py::T::test_x[1]": "passed", "T.test_x[1]": "passed", "test_x": "failed", "d.py::test_y[a": "skipped",
		"mod.T.test_z": "passed", "test_z": "", "x": "", "e.py::test_p[/f.py]": "passed", "d.py::test_y": "",
		"A page has a footer.": "failed", "A page": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
