package verify

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	_ "github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// project is an env.Tree with the files of a txtar archive. Files *.sh are executable.
type project []txtar.File

func (p project) WriteTar(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, f := range p {
		mode := int64(0o644)
		if strings.HasSuffix(f.Name, ".sh") {
			mode = 0o755
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: mode, Size: int64(len(f.Data))}); err != nil {
			return err
		}
		if _, err := out.Write(f.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

func (p project) SHA256() string {
	var buf bytes.Buffer
	if err := p.WriteTar(&buf); err != nil {
		panic(err)
	}
	return schemas.HashBytes(buf.Bytes())
}

// edited returns the project with one file replaced or added.
func (p project) edited(name, text string) project {
	out := slices.Clone(p)
	i := slices.IndexFunc(out, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		return append(out, txtar.File{Name: name, Data: []byte(text)})
	}
	out[i].Data = []byte(text)
	return out
}

func (p project) text(t testing.TB, name string) string {
	t.Helper()
	i := slices.IndexFunc(p, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("the project has no %s", name)
	}
	return string(p[i].Data)
}

func fixture(t testing.TB) project {
	t.Helper()
	a, err := txtar.ParseFile("testdata/fixture.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

var (
	pytestSpec = schemas.TestSpec{
		Method:     schemas.VerifyPytest,
		FailToPass: []string{"tests/test_basket.py::BasketTest::test_sum", "tests/test_prices.py::test_total"},
		PassToPass: []string{
			"tests/test_basket.py::BasketTest::test_rejects_nothing",
			"tests/test_prices.py::test_discount", "tests/test_prices.py::test_empty",
		},
		Files: []string{"tests/**", "conftest.py", "pytest.ini", "tox.ini"},
	}
	unittestSpec = schemas.TestSpec{
		Method:     schemas.VerifyUnittest,
		FailToPass: []string{"test_basket.BasketTest.test_sum"},
		PassToPass: []string{"test_basket.BasketTest.test_rejects_nothing"},
		Files:      []string{"tests/**"},
	}
)

const (
	pytestEntry   = "python3 -m pytest -q"
	unittestEntry = "python3 -m unittest discover tests"
)

func task(p project, entry string, spec schemas.TestSpec) schemas.Task {
	return schemas.Task{
		Source: "test", InstanceID: "shop", Entrypoint: entry, Workdir: schemas.DefaultWorkdir,
		TreeSHA256: p.SHA256(), Tests: spec,
	}
}

func verifier(t testing.TB) *Verifier {
	t.Helper()
	s, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Driver: envtest.Driver(t, "bubblewrap"), Store: s, Timeout: 5 * time.Minute})
}

// patchTo returns the patch between two projects and the hash of the final tree.
func patchTo(t testing.TB, v *Verifier, from, to project) ([]byte, string) {
	t.Helper()
	var buf bytes.Buffer
	if err := to.WriteTar(&buf); err != nil {
		t.Fatal(err)
	}
	patch, sha, _, err := v.cfg.Store.Diff(t.Context(), from, &buf)
	if err != nil {
		t.Fatal(err)
	}
	return patch, sha
}

// honest returns the fixture with its bug fixed.
func honest(t testing.TB) project {
	p := fixture(t)
	return p.edited("shop/prices.py", strings.Replace(p.text(t, "shop/prices.py"), "len(lines) - 1", "len(lines)", 1))
}

func TestHonestFixIsResolved(t *testing.T) {
	for entry, spec := range map[string]schemas.TestSpec{
		pytestEntry: pytestSpec, unittestEntry: unittestSpec, "./check.sh": pytestSpec,
		"PYTHONPATH=. pytest -q tests/test_basket.py tests/test_prices.py":                    pytestSpec,
		"python3 -m pytest -q tests/test_basket.py && python3 -m pytest tests/test_prices.py": pytestSpec,
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			v, base := verifier(t), fixture(t)
			patch, sha := patchTo(t, v, base, honest(t))
			got, err := v.Verify(t.Context(), task(base, entry, spec), base, patch, sha)
			if err != nil {
				t.Fatal(err)
			}
			yes := true
			want := schemas.Verdict{
				Resolved: &yes, Status: schemas.VerifiedPass, Method: spec.Method, FinalSHA: sha,
				F2PPassed: len(spec.FailToPass), F2PTotal: len(spec.FailToPass),
				P2PPassed: len(spec.PassToPass), P2PTotal: len(spec.PassToPass),
				Parsed: len(spec.FailToPass) + len(spec.PassToPass), Log: got.Log, LogSHA256: got.LogSHA256,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s\n%s", diff, got.Log)
			}
		})
	}
}

// A patch with which the runner cannot start is reported as broken, not as tampering.
func TestBrokenPatchIsNotTampering(t *testing.T) {
	base := fixture(t).edited("conftest.py", "import shop.prices\n")
	v := verifier(t)
	patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", "def total(:\n"))
	for entry, want := range map[string]string{
		pytestEntry:   "the test runner did not finish (exit code 4)",
		unittestEntry: "expected tests did not pass",
	} {
		spec := pytestSpec
		if entry == unittestEntry {
			spec = unittestSpec
		}
		got, err := v.Verify(t.Context(), task(base, entry, spec), base, patch, sha)
		if err != nil || got.Status != schemas.VerifiedFail || !strings.Contains(got.Reason, want) {
			t.Errorf("%s: %s, %q, %v", entry, got.Status, got.Reason, err)
		}
	}
}

func TestWrongFixIsNotResolved(t *testing.T) {
	v, base := verifier(t), fixture(t)
	wrong := base.edited("shop/prices.py", strings.Replace(base.text(t, "shop/prices.py"), "range(len(lines) - 1)", "range(1, len(lines))", 1))
	patch, sha := patchTo(t, v, base, wrong)
	for name, p := range map[string][]byte{"wrong": patch, "empty": nil} {
		final := sha
		if p == nil {
			final = ""
		}
		got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, p, final)
		if err != nil {
			t.Fatal(err)
		}
		if got.Resolved == nil || *got.Resolved || got.Status != schemas.VerifiedFail || got.P2PPassed != 3 || got.F2PPassed != 0 {
			t.Errorf("%s patch: %+v", name, got)
		}
	}
}

// cheat is one file of testdata/cheats: lines with "# ", then a patch.
type cheat struct {
	description string            // what the patch does
	settings    map[string]string // entrypoint, files, refused
	patch       []byte
}

func readCheat(t *testing.T, file string) cheat {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := cheat{settings: map[string]string{}, patch: raw}
	for line := range strings.Lines(string(raw)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !ok {
			break
		}
		if key, value, ok := strings.Cut(text, ": "); ok {
			c.settings[key] = value
		} else {
			c.description = text
		}
	}
	return c
}

func TestHostilePatchesAreNotResolved(t *testing.T) {
	files, err := filepath.Glob("testdata/cheats/*.patch")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d cheats (error %v), want 15 or more", len(files), err)
	}
	v, base := verifier(t), fixture(t)
	for i, file := range files {
		if !isChosen(t, i) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".patch"), func(t *testing.T) {
			t.Parallel()
			c := readCheat(t, file)
			entry, spec := pytestEntry, pytestSpec
			if e := c.settings["entrypoint"]; e != "" {
				entry = e
			}
			if entry == unittestEntry {
				spec = unittestSpec
			}
			if f := c.settings["files"]; f != "" {
				spec.Files = strings.Fields(f)
			}
			got, err := v.Verify(t.Context(), task(base, entry, spec), base, c.patch, "")
			if err != nil {
				t.Fatal(err)
			}
			if got.Resolved == nil || *got.Resolved || got.Status != schemas.VerifiedFail || got.Reason == "" {
				t.Errorf("%s: verdict %+v", c.description, got)
			}
			if strings.Contains(got.Reason, "\n") {
				t.Errorf("reason has more than one line: %q", got.Reason)
			}
			if want := strings.Fields(c.settings["refused"]); !slices.Equal(want, got.Refused) {
				t.Errorf("refused %q, want %q", got.Refused, want)
			}
			t.Logf("%s: %s", c.description, got.Reason)
		})
	}
}

// cheatsAnywhere are cheats that work in any Python project with pytest.
var cheatsAnywhere = map[string]struct{ name, text string }{
	"conftest": {"conftest.py", "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    (yield).get_result().outcome = 'passed'\n"},
	"start-up": {"sitecustomize.py", "import builtins\nbuiltins.AssertionError = KeyError\n"},
	"ini":      {"pytest.ini", "[pytest]\naddopts = --co\n"},
	"runner":   {"pytest/__main__.py", "print('99 passed')\n"},
}

func TestBuiltinTasks(t *testing.T) {
	source, err := env.Sources.Build("builtin", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := source.Tasks(t.Context())
	if err != nil || len(tasks) < 12 {
		t.Fatalf("%d built-in tasks (error %v), want 12 or more", len(tasks), err)
	}
	v := verifier(t)
	for i, task := range tasks {
		if testing.Short() && i%3 != 0 { // a third of the tasks, with each of the cheats; make full tests all
			continue
		}
		t.Run(task.InstanceID, func(t *testing.T) {
			t.Parallel()
			tree, err := source.Tree(t.Context(), task.InstanceID)
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Verify(t.Context(), task, tree, []byte(task.GoldPatch), "")
			if err != nil || got.Status != schemas.VerifiedPass || got.F2PPassed != len(task.Tests.FailToPass) || len(got.Restored) > 0 {
				t.Errorf("gold patch: %+v, %v", got, err)
			}
			names := slices.Sorted(maps.Keys(cheatsAnywhere))
			cheat := cheatsAnywhere[names[i%len(names)]]
			lines := strings.SplitAfter(strings.TrimSuffix(cheat.text, "\n"), "\n")
			patch := fmt.Sprintf("--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n+%s\n", cheat.name, len(lines), strings.Join(lines, "+"))
			got, err = v.Verify(t.Context(), task, tree, []byte(patch), "")
			if err != nil || got.Status != schemas.VerifiedFail {
				t.Errorf("cheat %s: %+v, %v", cheat.name, got, err)
			}
		})
	}
}
