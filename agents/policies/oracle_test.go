package policies_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/handover"
	_ "github.com/tracesmith/tracesmith/agents/oracle"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
)

// shop is a program with a test. Each bug of shopBugs replaces a line of it.
var shop = map[string]string{
	"shop/__init__.py": "",
	"shop/cart.py": `from shop.prices import discount, rounded


class Cart:
    def __init__(self, customer):
        self.customer = customer
        self.items = []

    def add(self, price, count=1):
        price = max(price, 0)
        self.items.append((price, count))

    def total(self):
        amount = 0
        for price, count in self.items:
            amount += price * count
        rate = discount(amount, self.customer)
        payable = amount - amount * rate
        return rounded(payable)
`,
	"shop/prices.py": `LIMIT = 100


def discount(amount, customer):
    """The share of the amount that the customer need not pay: a tenth from LIMIT on, for members only."""
    if customer == "member" and amount >= LIMIT:
        return 0.1
    return 0.0


def rounded(amount):
    cents = int(amount * 100 + 0.5)
    return cents / 100
`,
	"tests/test_cart.py": `from shop.cart import Cart


def test_member():
    cart = Cart("member")
    cart.add(60, 2)
    cart.add(5)
    assert cart.total() == 112.5


def test_limit():
    cart = Cart("member")
    cart.add(100)
    assert cart.total() == 90


def test_guest():
    cart = Cart("guest")
    cart.add(20)
    assert cart.total() == 20


def test_deposit():
    cart = Cart("guest")
    cart.add(-5)
    cart.add(10)
    assert cart.total() == 10


def test_members():
    first = Cart("member")
    first.add(200)
    assert first.total() == 180
    second = Cart("member")
    second.add(100)
    assert second.total() == 90
`,
}

var shopBugs = []struct {
	name, file, line, bug, failing string
	evidence                       bool // a value that differs, other than those that the failing test reports, is on the way
}{
	{"value", "shop/cart.py", "        payable = amount - amount * rate", "        payable = amount + amount * rate", "tests/test_cart.py::test_member", false},
	{"condition", "shop/prices.py", "amount >= LIMIT:", "amount > LIMIT:", "tests/test_cart.py::test_limit", true},
	{"later call", "shop/prices.py", "amount >= LIMIT:", "amount > LIMIT:", "tests/test_cart.py::test_members", true},
	{"argument", "shop/cart.py", "append((price, count))", "append((price, price))", "tests/test_cart.py::test_member", true},
	{"order", "shop/cart.py", "        price = max(price, 0)\n        self.items.append((price, count))", "        self.items.append((price, count))\n        price = max(price, 0)",
		"tests/test_cart.py::test_deposit", true},
	{"return", "shop/prices.py", "    return cents / 100", "    return cents // 100", "tests/test_cart.py::test_member", false},
	{"update", "shop/cart.py", "            amount += price * count", "            amount -= price * count", "tests/test_cart.py::test_member", true},
}

// The oracle finds bugs of one line with evidence and repairs them with edits that it derives from experiments. Its
// texts name only what was shown, and say nothing that is false.
func TestAgentsOracle(t *testing.T) {
	suite.Agents.Require(t)
	all := &oracleRuns{dir: t.TempDir(), done: map[string]oracleRun{}}
	for i, bug := range shopBugs {
		t.Run(bug.name, func(t *testing.T) {
			run := all.of(t, i)
			task, tree, result := run.task, run.tree, run.result
			last := result.Steps[len(result.Steps)-1]
			if result.ExitReason != schemas.ExitSubmitted || last.State == nil || last.State.EvalPassed == nil || !*last.State.EvalPassed {
				printSteps(t, result.Steps)
				t.Fatalf("exit %s: %s", result.ExitReason, result.ErrorMessage)
			}
			checkGrounded(t, auditedOf(t, task, tree, result.Tools, result.Steps))
			_, rows := rowsOf(t, task, result.Steps)
			if wrong := claimsWith(t, schemas.ClaimFalse, rows); len(wrong) > 0 {
				t.Errorf("false claims: %q", wrong)
			}
			staged, err := normalise.Episode(&schemas.Episode{Task: task, Steps: result.Steps}, normalise.Config{Compare: comparison(t, run.pairs, tree, task)})
			if err != nil {
				t.Fatal(err)
			}
			if e := staged.Episode; schemas.Value(e.GoldEvidenceDiffers) != bug.evidence {
				printSteps(t, result.Steps)
				t.Errorf("a printed value differs in the fixed program: %v, want %v", schemas.Value(e.GoldEvidenceDiffers), bug.evidence)
			}
		})
	}
	t.Run("with another fix", func(t *testing.T) { checkWithAnotherFix(t, all) })
	t.Run("with other names", func(t *testing.T) { checkWithOtherNames(t, all) })
	t.Run("replayed", func(t *testing.T) { checkReplayed(t, all.of(t, 1)) })
	t.Run("swapped diagnoses", func(t *testing.T) { checkSwappedDiagnoses(t, all) })
}

// The experiments of the oracle do not know the fix of this bug. The oracle names the cause and stops there, hands it over, or makes
// the edits of the gold patch. These, and what follows, are masked.
func TestAgentsOracleEndsWithoutADerivedEdit(t *testing.T) {
	suite.Agents.Require(t)
	tree, task := shopTask(t, strings.Clone, "shop/prices.py", "int(amount * 100 + 0.5)", "int(amount) * 100", "tests/test_cart.py::test_member")
	for _, c := range []struct{ setting, ending, exit string }{
		{"", schemas.EndingConclusion, schemas.ExitGaveUp},
		{"handover", schemas.EndingConclusion, schemas.ExitHandedOver},
		{"gold_edit", schemas.EndingGoldEdit, schemas.ExitSubmitted},
	} {
		config, ending := map[string]any{}, c.ending
		if c.setting != "" {
			config[c.setting] = true
		}
		result := newOracleRun(t, t.TempDir(), tree, task, config).result
		if result.ExitReason != c.exit {
			printSteps(t, result.Steps)
			t.Errorf("%q: exit %s, want %s", c.setting, result.ExitReason, c.exit)
		}
		if pack, ok := handover.Find(task.Workdir, result.Steps); ok != (c.setting == "handover") {
			t.Errorf("%q: handed over: %v", c.setting, ok)
		} else if ok && (len(pack.Values) == 0 || !slices.ContainsFunc(pack.Files[0].Lines, func(l handover.Line) bool { return strings.Contains(l.Text, "int(amount) * 100") })) {
			t.Errorf("the pack lacks values or the faulty line: %+v", pack)
		}
		staged, err := normalise.Episode(&schemas.Episode{Task: task, Steps: result.Steps, Agent: schemas.AgentInfo{Policy: "oracle", GoldUsed: true}}, normalise.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if e := staged.Episode; schemas.Value(e.Ending) != ending || !schemas.Value(e.NamesCause) {
			printSteps(t, result.Steps)
			t.Errorf("ending %s, want %s; names_cause %v", schemas.Value(e.Ending), ending, schemas.Value(e.NamesCause))
		}
		isGold := false
		for _, r := range staged.Steps {
			isGold = isGold || schemas.Value(r.GoldEdit)
			if isMasked := schemas.Value(r.MaskReason) == metrics.MaskGold; r.Source == "agent" && isMasked != isGold {
				t.Errorf("%s: step %d is masked as gold: %v, want %v", ending, r.StepIndex, isMasked, isGold)
			}
		}
		last := result.Steps[len(result.Steps)-1]
		if passed := last.State != nil && schemas.Value(last.State.EvalPassed); passed != (ending == schemas.EndingGoldEdit) {
			t.Errorf("%s: the tests pass at the end: %v", ending, passed)
		}
	}
}

// shopTask returns the shop with one bug, whose texts rename changes.
func shopTask(t *testing.T, rename func(string) string, file, line, bug, failing string) (env.Tree, schemas.Task) {
	t.Helper()
	buggy := map[string]string{}
	for name, text := range shop {
		buggy[rename(name)] = rename(text)
	}
	file = rename(file)
	fixed := buggy[file]
	buggy[file] = strings.Replace(fixed, rename(line), rename(bug), 1)
	task := schemas.Task{InstanceID: "shop", Source: "test", Instructions: "A test of the shop fails.", Entrypoint: "python3 -m pytest -q",
		GoldPatch: lineFix(file, buggy[file], fixed), Workdir: schemas.DefaultWorkdir}
	task.Tests = schemas.TestSpec{Method: "pytest", FailToPass: []string{rename(failing)}}
	task.ID = task.ComputeID()
	return treeOf(t, buggy), task
}

// oracleRun is an episode of the oracle.
type oracleRun struct {
	tree   env.Tree
	task   schemas.Task
	pairs  trace.Pairs
	trace  schemas.PairedTrace // of the failing test
	result agents.Result
}

// newOracleRun runs the oracle on a task. dir keeps paired traces.
func newOracleRun(t *testing.T, dir string, tree env.Tree, task schemas.Task, config map[string]any) oracleRun {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := oracleRun{tree: tree, task: task}
	run.pairs = trace.Pairs{Runner: verify.New(verify.Config{Driver: envtest.Driver(t, "bubblewrap"), Store: store, Timeout: 5 * time.Minute}), Dir: dir}
	if run.trace, err = run.pairs.Trace(t.Context(), task, tree, task.Tests.FailToPass[0]); err != nil {
		t.Fatal(err)
	}
	run.result = run.episode(t, "oracle", config, run.gold())
	return run
}

// gold returns what the chooser knows.
func (run oracleRun) gold() agents.Deps {
	return agents.Deps{Task: run.task, Gold: &agents.Privileged{GoldPatch: run.task.GoldPatch, Failing: run.task.Tests.FailToPass,
		Trace: func(context.Context, string) (schemas.PairedTrace, error) { return run.trace, nil }}}
}

// episode runs an agent on the task in a new sandbox.
func (run oracleRun) episode(t *testing.T, agent string, config map[string]any, deps agents.Deps) agents.Result {
	t.Helper()
	kit := tooltest.Kit(t, nil)
	e := tooltest.Environment(t, func(c *env.Config) {
		c.Task, c.Tree, c.Toolbox, c.CommandTimeout = run.task, run.tree, tooltest.Set(t, kit), time.Minute
	})
	policy, err := agents.Registry.Build(agent, config, deps)
	if err != nil {
		t.Fatal(err)
	}
	result, err := agents.Run(t.Context(), agents.Config{Env: e, Policy: policy, Task: run.task.Public(), Limits: agents.Limits{MaxSteps: 60}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func treeOf(t *testing.T, files map[string]string) env.Tree {
	t.Helper()
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	tree, err := workspace.FromFS(all, ".")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// lineFix returns the patch of one file.
func lineFix(file, from, to string) string {
	return "diff --git a/" + file + " b/" + file + "\n" + udiff.Unified("a/"+file, "b/"+file, from, to)
}
