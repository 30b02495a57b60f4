package synth

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/lint"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// bank is a repository with functions that few tests reach and functions that most tests reach.
var bank = map[string]string{
	"bank.py": `class Account:
    """An account with a limit."""

    def __init__(self, limit=0):
        self.balance = 0
        self.limit = limit
        self.log = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.log.append(("deposit", amount))

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if self.balance - amount < -self.limit:
            raise RuntimeError("limit reached")
        self.balance -= amount
        self.log.append(("withdraw", amount))

    def fees(self, rate):
        total = 0
        for kind, amount in self.log:
            if kind == "withdraw":
                total += amount * rate
        return total


def largest(amounts):
    best = None
    for amount in amounts:
        if best is None or amount > best:
            best = amount
    return best
`,
	"test_bank.py": `import pytest

from bank import Account, largest


def test_deposit():
    a = Account()
    a.deposit(10)
    assert a.balance == 10


def test_deposit_nothing():
    with pytest.raises(ValueError):
        Account().deposit(0)


def test_withdraw():
    a = Account()
    a.deposit(10)
    a.withdraw(4)
    assert a.balance == 6


def test_limit():
    a = Account(limit=5)
    a.withdraw(5)
    with pytest.raises(RuntimeError):
        a.withdraw(1)


def test_withdraw_nothing():
    with pytest.raises(ValueError):
        Account().withdraw(-1)


def test_fees():
    a = Account(100)
    a.deposit(7)
    a.withdraw(10)
    a.withdraw(20)
    assert a.fees(2) == 60


def test_largest():
    assert largest([3, 9, 2]) == 9


def test_largest_of_none():
    assert largest([]) is None


def test_largest_of_equals():
    assert largest([4, 4]) == 4


def test_log():
    a = Account()
    a.deposit(1)
    assert a.log == [("deposit", 1)]
`,
}

// bankOfUnittest returns bank with tests for unittest, which starts faster than pytest.
func bankOfUnittest(t *testing.T) Repo {
	t.Helper()
	_, tests, _ := strings.Cut(bank["test_bank.py"], "\n\n\n")
	tests = strings.NewReplacer("\n", "\n    ", "():", "(self):", "pytest.raises", "self.assertRaises").Replace("\n" + tests)
	return healthy(t, "bank", "python -m unittest -q", map[string]string{
		"bank.py":      bank["bank.py"],
		"test_bank.py": "import unittest\n\nfrom bank import Account, largest\n\n\nclass Bank(unittest.TestCase):" + tests + "\n",
	})
}

func configOf(t *testing.T, out string, repos ...Repo) Config {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	driver := bubblewrap(t)
	return Config{
		Repos: repos, Out: out, Seed: 7, Workers: 2, Runs: 2, ReleaseRuns: 3, Store: store, Candidates: 10,
		Kinds: []string{KindSingle, KindComposed},
		Sandbox: func(_ context.Context, task schemas.Task, _ env.Tree) (env.Driver, env.SandboxSpec, error) {
			return driver, env.SandboxSpec{Workdir: task.Workdir}, nil
		},
	}
}

func TestFactoryMakesTasksFromAHealthyRepository(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	files := maps.Clone(bank)
	_, fees, _ := strings.Cut(bank["bank.py"], "    def fees")
	files["old/fees.py"] = "class Statement:\n    def fees" + fees // a bug in fees would be a leak
	sum, err := Run(t.Context(), configOf(t, out, healthy(t, "bank", "python -m pytest -q", files)))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Outcomes[Leaking] == 0 {
		t.Errorf("no leak among %v", sum.Outcomes)
	}
	entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != sum.Tasks || sum.Tasks < 3 || sum.Outcomes[Released] != sum.Tasks || sum.Candidates < 10 {
		t.Fatalf("read %d tasks: %+v", len(entries), sum)
	}
	for _, e := range entries {
		task := e.Task
		if _, err := e.Tree(); err != nil {
			t.Error(err) // Tree checks that the bug patch gives the tree with the task's hash
		}
		d, o := task.Difficulty, task.Origin
		if len(task.Tests.FailToPass) == 0 || 2*len(task.Tests.FailToPass) > 10 || len(task.Tests.FailToPass)+len(task.Tests.PassToPass) != 10 ||
			o.Operator == "" || !strings.HasPrefix(o.Site, "bank.py:") || d.GoldVisible == nil || d.TraceLen == nil || d.GoldCyclomatic == nil || d.GoldLevel == "" || d.Level == "" || d.GoldFunctionShown == nil {
			t.Errorf("%s: %+v %+v %+v", task.InstanceID, task.Tests, o, d)
		}
		if found := lint.Text(task.Instructions, lint.Names{Words: lint.ChangedWords([]byte(task.BugPatch)), Files: []string{"bank.py"}}); task.Instructions == "" ||
			slices.ContainsFunc(found, func(l lint.Finding) bool { return l.Kind == "file" || l.Kind == "line number" }) {
			t.Errorf("%s has the text %q: %v", task.InstanceID, task.Instructions, found)
		}
	}
}

// The same settings give the same bytes, with one worker or four, in one run or in two.
func TestFactoryIsDeterministic(t *testing.T) {
	suite.Factory.Require(t)
	dir := t.TempDir()
	read := func(out string) string {
		var all []byte
		for _, name := range []string{TasksName, TextsName} {
			text, err := os.ReadFile(filepath.Join(dir, out, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		return string(all)
	}
	config := func(out string) Config {
		cfg := configOf(t, filepath.Join(dir, out), healthy(t, "bank", "python -m pytest -q", bank), healthy(t, "slots", "PYTHONPATH=src python -m unittest -q", slotted))
		cfg.Candidates, cfg.Runs, cfg.ReleaseRuns = 4, 2, 2
		return cfg
	}
	one := config("one")
	one.Workers = 1
	if _, err := Run(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	four := config("four")
	four.Workers = 4
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	four.Progress = func(p Progress) {
		if p.Judged >= 3 {
			stop()
		}
	}
	if _, err := Run(ctx, four); !errors.Is(err, context.Canceled) {
		t.Fatalf("a canceled run returned %v", err)
	}
	journal, err := os.OpenFile(filepath.Join(dir, "four", journalName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.WriteString(`{"trial":{"repo":"ba`); err != nil { // a partial line, as a killed run leaves it
		t.Fatal(err)
	}
	journal.Close()
	four.Progress = nil
	sum, err := Run(t.Context(), four)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Resumed < 3 || sum.Tasks == 0 {
		t.Errorf("resumed: %+v", sum)
	}
	if diff := cmp.Diff(read("one"), read("four")); diff != "" {
		t.Error(diff)
	}
	other := config("four")
	other.Seed++
	if _, err := Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "seed 7, not 8") {
		t.Errorf("another seed in the same directory: %v", err)
	}
}

// A slow test on a busy machine is not a hang if the healthy tree is slow as well.
func TestFactorySlowTestsAreNotHangs(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	// Only slightly slower than minTimeout, because the endless loop runs timeoutFactor times as long.
	r := healthy(t, "slow", "python -m pytest -q", map[string]string{
		"slow.py":      "def f(x):\n    while x > 10:\n        pass\n    return x\n",
		"test_slow.py": "import time\n\nfrom slow import f\n\n\ndef test_slow():\n    time.sleep(3.2)\n    assert f(1) == 1\n\n\ndef test_one():\n    assert f(2) == 2\n",
	})
	kept := []string{"test_slow.py::test_one", "test_slow.py::test_slow"}
	s := &repoState{repo: r, kept: kept, seconds: 0.1}
	w := &worker{bench: benchOf(t, r), state: s}
	got, err := w.runBounded(t.Context(), s, firstSeed, request{Only: kept, Files: map[string]string{"slow.py": "def f(x):\n    return 1\n"}})
	if err != nil || got.TimedOut || strings.Join(slices.Sorted(maps.Keys(nonPassingOf(kept, got))), " ") != "test_slow.py::test_one" {
		t.Errorf("%v, %+v", err, got)
	}
	if got, err = w.runBounded(t.Context(), s, firstSeed, request{Only: kept, Files: map[string]string{"slow.py": "def f(x):\n    while True:\n        pass\n"}}); err != nil || !got.TimedOut {
		t.Errorf("%v, %+v", err, got)
	}
}

// The compiler removes `if False:`, so that the changed line never runs. The bug still gets a rank.
func TestFactoryBugWithoutExecutedLinesIsRanked(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank))
	cfg.Kinds, cfg.Operators, cfg.Candidates, cfg.ReleaseRuns = []string{KindSingle}, []string{"r5"}, 0, 2
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d tasks, %v: %+v", len(entries), err, sum)
	}
	for _, e := range entries {
		if d := e.Task.Difficulty; d.GoldOchiaiRank == nil || d.GoldLevel == "T4" {
			t.Errorf("%s: %+v", e.Task.BugPatch, d)
		}
	}
}
