package check

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/docker"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/pdb"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// project maps paths of a repository to texts.
type project map[string]string

func (p project) with(more project) project {
	out := project{}
	for _, files := range []project{p, more} {
		for name, text := range files {
			out[name] = text
		}
	}
	return out
}

func (p project) tree(t testing.TB) env.Tree {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range p {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	tr, err := workspace.FromFS(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func config(t testing.TB) Config {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Driver: envtest.Driver(t, "bubblewrap"), Store: store, Timeout: 5 * time.Minute, Runs: 3, Isolated: time.Hour,
		NewDebugger: func(sb env.Sandbox, t schemas.Task) env.Debugger {
			entry := t.DebugEntrypoint
			if entry == "" {
				entry = t.Entrypoint
			}
			return pdb.New(pdb.Config{Sandbox: sb, Workdir: t.Workdir, Entrypoint: entry})
		},
	}
}

// patch returns the patch that turns one project into another.
func patch(t testing.TB, cfg Config, from, to project) string {
	t.Helper()
	var buf bytes.Buffer
	if err := to.tree(t).WriteTar(&buf); err != nil {
		t.Fatal(err)
	}
	p, _, _, err := cfg.Store.Diff(t.Context(), from.tree(t), &buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

var shop = project{
	"shop.py": "def total(prices):\n    return sum(prices[1:])\n\n\ndef count(prices):\n    return len(prices)\n",
	"tests/test_shop.py": "import pytest\nfrom shop import count, total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\n" +
		"@pytest.mark.parametrize('n', [0, 3])\ndef test_count(n):\n    assert count([1] * n) == n\n",
}

var fixedShop = shop.with(project{"shop.py": "def total(prices):\n    return sum(prices)\n\n\ndef count(prices):\n    return len(prices)\n"})

func shopTask(gold string) schemas.Task {
	return schemas.Task{
		Source: "test", InstanceID: "shop", Instructions: "total is wrong.", Entrypoint: "python3 -m pytest -q", Workdir: schemas.DefaultWorkdir,
		GoldPatch: gold, Tests: schemas.TestSpec{
			Method: schemas.VerifyPytest, Files: []string{"tests/**"},
			FailToPass: []string{"tests/test_shop.py::test_total"},
			PassToPass: []string{"tests/test_shop.py::test_count[0]", "tests/test_shop.py::test_count[3]"},
		},
	}
}

func TestFactoryValidTaskPasses(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	rep, err := Task(t.Context(), cfg, shopTask(patch(t, cfg, shop, fixedShop)), shop.tree(t))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Status != Sound || rep.Reason != "" || rep.Runs != 3 || rep.Isolated != 3 || !strings.Contains(rep.PDB, ":1") {
		t.Errorf("report %+v", rep)
	}
	if rep.Before["tests/test_shop.py::test_total"] != "failed" || rep.After["tests/test_shop.py::test_total"] != "passed" {
		t.Errorf("verdicts %v, %v", rep.Before, rep.After)
	}
}

// A rerun does not see files that the tests of another run left behind.
func TestFactoryRerunsAreIsolated(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := config(t)
	healthy := project(envtest.Littering(3))
	buggy := healthy.with(project{"sums.py": strings.Replace(healthy["sums.py"], "return x - y", "return y - x", 1)})
	task := shopTask(patch(t, cfg, buggy, healthy))
	task.Tests.FailToPass = []string{"tests/test_sums.py::test_f0"}
	task.Tests.PassToPass = []string{"tests/test_sums.py::test_f1", "tests/test_sums.py::test_f2"}
	rep, err := Task(t.Context(), cfg, task, buggy.tree(t))
	if err != nil || rep.Status != Sound || rep.Runs != 3 || rep.Isolated != 3 {
		t.Errorf("%v, report %+v", err, rep)
	}
}

func TestFactoryBrokenTasksGetTheirStatus(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	gold := patch(t, cfg, shop, fixedShop)
	useless := patch(t, cfg, shop, shop.with(project{"shop.py": strings.Replace(shop["shop.py"], "len(prices)", "len(prices) + 0", 1)}))
	ofTests := patch(t, cfg, shop, shop.with(project{"tests/test_shop.py": strings.Replace(shop["tests/test_shop.py"], "== 3", "== 2", 1)}))
	cases := map[string]struct {
		tree   project
		change func(*schemas.Task)
		status Status
		reason string
	}{
		"no gold":          {shop, func(t *schemas.Task) { t.GoldPatch = "" }, NoGold, ""},
		"no lists":         {shop, func(t *schemas.Task) { t.Tests.FailToPass, t.Tests.PassToPass = nil, nil }, Sound, ""},
		"another tree":     {shop, func(t *schemas.Task) { t.TreeSHA256 = strings.Repeat("0", 64) }, Broken, "was made for 0000"},
		"no such test":     {shop, func(t *schemas.Task) { t.GoldPatch, t.Tests.FailToPass = "", []string{"tests/test_shop.py::test_no"} }, Broken, "there is no test tests/test_shop.py::test_no"},
		"wrong entrypoint": {shop, func(t *schemas.Task) { t.Entrypoint, t.GoldPatch, t.Tests = "pytset", "", schemas.TestSpec{} }, Broken, "cannot be collected"},
		"cannot start":     {shop.with(project{"conftest.py": "import no_such_library\n"}), func(*schemas.Task) {}, Broken, "conftest.py: ModuleNotFoundError: No module named 'no_such_library'"},
		"healthy":          {fixedShop, func(t *schemas.Task) { t.GoldPatch = "" }, NotFailing, "test_total passed before the fix"},
		"wrong list": {shop, func(t *schemas.Task) {
			t.Tests.PassToPass = append(t.Tests.PassToPass, t.Tests.FailToPass...)
			t.Tests.FailToPass = nil
		}, NotFailing, "no test is listed"},
		"pass to pass fails": {shop, func(t *schemas.Task) {
			t.Tests.PassToPass = append(t.Tests.PassToPass, "tests/test_shop.py::test_gone")
		}, NotPassing, "test_gone missing before the fix"},
		"useless gold":    {shop, func(t *schemas.Task) { t.GoldPatch = useless }, GoldFails, "1 of 3 expected tests did not pass"},
		"gold of tests":   {shop, func(t *schemas.Task) { t.GoldPatch = ofTests }, GoldFails, "only tests"},
		"foreign gold":    {shop, func(t *schemas.Task) { t.GoldPatch = "--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n" }, GoldFails, "does not apply"},
		"slow":            {shop.with(project{"tests/test_slow.py": "import time\ndef test_slow(): time.sleep(60)\n"}), func(*schemas.Task) {}, TooSlow, "ran out of time"},
		"silent debugger": {shop, func(t *schemas.Task) { t.DebugEntrypoint = "echo hello | cat" }, PDBSilent, "pipes"},
		"dead debugger":   {shop, func(t *schemas.Task) { t.DebugEntrypoint = "python3 nowhere.py" }, PDBSilent, "nowhere.py"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			if c.status == TooSlow {
				cfg.Timeout = 8 * time.Second
			}
			task := shopTask(gold)
			c.change(&task)
			rep, err := Task(t.Context(), cfg, task, c.tree.tree(t))
			if err != nil {
				t.Fatal(err)
			}
			if rep.Status != c.status || !strings.Contains(rep.Reason, c.reason) || rep.Remedy != Meanings[c.status].Remedy {
				t.Errorf("%s: %q (%s); want %s: ...%s...", rep.Status, rep.Reason, rep.Remedy, c.status, c.reason)
			}
		})
	}
}
