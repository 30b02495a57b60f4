package synth

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/mock"
	_ "github.com/tracesmith/tracesmith/llms/providers"
	"github.com/tracesmith/tracesmith/schemas"
)

// commit writes files into a git repository and returns the commit's hash.
func commit(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "change")
	return git("rev-parse", "HEAD")
}

// versioned returns the bank repository with a git history. fix is the commit that corrected the
// fees, note a later commit that only adds a comment.
func versioned(t *testing.T) (r Repo, fix, note string) {
	t.Helper()
	dir := t.TempDir()
	commit(t, dir, map[string]string{"bank.py": strings.Replace(bank["bank.py"], "amount * rate", "amount", 1), "test_bank.py": bank["test_bank.py"]})
	fix = commit(t, dir, map[string]string{"bank.py": bank["bank.py"]})
	commented := strings.Replace(bank["bank.py"], "    best = None\n", "    # The first one wins.\n    best = None\n", 1)
	note = commit(t, dir, map[string]string{"bank.py": commented})
	snapshot, err := workspace.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r = healthy(t, "bank", "python -m pytest -q", bank)
	r.Tree, r.History = snapshot, dir
	return r, fix, note
}

func TestFactoryRevertsCommitsThatTestsNotice(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	r, fix, note := versioned(t)
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), r)
	cfg.Kinds, cfg.ReleaseRuns = []string{KindCommit}, 2
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
	if err != nil || len(entries) != 1 || sum.Candidates != 2 || sum.Operators[KindCommit].Outcomes[Refused] != 1 {
		t.Fatalf("%d tasks, %v: %+v", len(entries), err, sum)
	}
	task := entries[0].Task
	if o := task.Origin; o.Commit != fix || o.Operator != KindCommit || !strings.HasPrefix(o.Site, "bank.py:") ||
		strings.Join(task.Tests.FailToPass, " ") != "test_bank.py::test_fees" || !strings.Contains(task.GoldPatch, "amount * rate") {
		t.Errorf("%+v %+v\n%s", o, task.Tests, task.GoldPatch)
	}
	if o := task.Public().Origin; o.Commit != "" || o.Operator != "" {
		t.Errorf("the public task reveals its origin: %+v", o)
	}
	journal, err := os.ReadFile(filepath.Join(cfg.Out, journalName))
	if err != nil || !strings.Contains(string(journal), `"key":"commit:`+note+`"`) || !strings.Contains(string(journal), "nothing that runs") {
		t.Errorf("%v; the commit that adds a comment is not refused in the journal:\n%s", err, journal)
	}
}

func TestFactoryRepositoryWithoutHistorySaysSo(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank))
	cfg.Kinds = []string{KindCommit}
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "bank: no git history that can be read") {
		t.Errorf("got %v", err)
	}
	cfg.Out, cfg.Kinds, cfg.Candidates = filepath.Join(t.TempDir(), "other"), []string{KindSingle, KindCommit}, 1
	cfg.Repos[0].History = t.TempDir()
	if sum, err := Run(t.Context(), cfg); err != nil || !strings.Contains(sum.Notes["bank"], "no commit is reverted: ") || sum.Candidates != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// writer returns a model with a price. It writes a bug for the function largest and one report, and refuses other requests.
func writer(t *testing.T) *Model {
	t.Helper()
	bug := "```python\ndef largest(amounts):\n    best = None\n    for amount in amounts:\n        if best is None or amount < best:\n            best = amount\n    return best\n```"
	no := "I would rather not."
	usage := &mock.Usage{Prompt: 1000, Completion: 10}
	report := "I asked for the largest of 3, 9 and 2 and got 2, where I expected 9."
	sessions := []mock.Session{{User: "Somebody who uses a Python program", Turns: []mock.Turn{{Content: &report, Usage: usage}}}}
	for _, name := range []string{"largest", "Account.__init__", "Account.deposit", "Account.withdraw", "Account.fees"} {
		answer := &no
		if name == "largest" {
			answer = &bug
		}
		sessions = append(sessions, mock.Session{User: "function `" + name + "`", Turns: []mock.Turn{{Content: answer, Usage: usage}}})
	}
	srv := mocktest.Serve(t, mock.Script{Key: "k", Sessions: sessions})
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m", "api_key": "env:KEY"},
		llms.Deps{Getenv: func(string) string { return "k" }})
	if err != nil {
		t.Fatal(err)
	}
	client, err = middle.Wrap([]middle.Endpoint{{Client: client}}, middle.Config{Prices: middle.Prices{{Model: "m", Input: 1000}}, Limited: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Client: client}
}

// The scripted server answers each question only once, so a run must reuse the answers of earlier runs.
func TestFactoryModelWritesBugsWithinItsBudget(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank))
	cfg.Kinds, cfg.ReleaseRuns, cfg.Workers = []string{KindModel}, 2, 1
	cfg.Model, cfg.MaxCost = writer(t), 4
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if sum.OverBudget == 0 || sum.Candidates == 0 || sum.OverBudget+sum.Candidates != 5 || sum.CostUSD > 4 || sum.CostUSD < float64(sum.Candidates) {
		t.Fatalf("five functions, with a budget for some: %+v", sum)
	}
	cfg.MaxCost, cfg.Text = 100, TextReporter
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "text mixed, not reporter") {
		t.Errorf("another text in the same directory: %v", err)
	}
	cfg.Text = ""
	if sum, err = Run(t.Context(), cfg); err != nil || sum.OverBudget != 0 || sum.Candidates != 5 || sum.CostUSD < 5 || sum.CostUSD > 6 || sum.Operators[KindModel].Outcomes[Refused] != 4 {
		t.Fatalf("%+v, %v", sum, err)
	}
	entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d tasks, %v", len(entries), err)
	}
	if o := entries[0].Task.Origin; o.Operator != KindModel || o.Model != "m" || len(o.PromptSHA256) != 64 || !strings.Contains(entries[0].Task.GoldPatch, "amount > best") {
		t.Errorf("%+v\n%s", o, entries[0].Task.GoldPatch)
	}
	texts, err := os.ReadFile(filepath.Join(cfg.Out, TextsName))
	if err != nil || !strings.Contains(string(texts), `"reporter":"I asked for the largest`) && !strings.Contains(string(texts), `"reporter":"not written: the budget is used up"`) {
		t.Errorf("%v, the texts are %s", err, texts)
	}
}

// The task's text is the model's report if the linter accepts it, and otherwise a generated text.
func TestFactoryUsesReportWithoutLeaks(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	for report, want := range map[string]string{
		"I took the largest of some numbers and it was not the one I expected.":      "I took the largest",
		"I think that amount > best was reversed in bank.py, look at line 35 of it.": "",
	} {
		model := writer(t)
		model.Client = &reporter{model.Client, report}
		cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank))
		cfg.Kinds, cfg.ReleaseRuns, cfg.Text, cfg.Model, cfg.Functions = []string{KindModel}, 2, TextReporter, model, 5
		sum, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
		if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Task.Instructions, want) || strings.Contains(entries[0].Task.Instructions, "was reversed") {
			t.Errorf("%d tasks, %v, want %q: %+v", len(entries), err, want, sum)
		}
	}
}

// reporter is a client that answers requests for a report with a fixed text.
type reporter struct {
	llms.Client
	report string
}

func (r *reporter) Chat(ctx context.Context, q llms.Request) (out llms.Response, err error) {
	if strings.HasPrefix(q.Messages[0].Content, "Somebody who uses a Python program") {
		out.Reply.Message = r.report
		return out, nil
	}
	return r.Client.Chat(ctx, q)
}

func TestModelBudgetWaitsForRunningCalls(t *testing.T) {
	p := newModelBudget(1, 0.2)
	a := &account{budget: p}
	if _, err := a.Begin(t.Context(), 0.5); err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() { second <- p.begin(t.Context(), 0.5) }()
	if err := a.End(t.Context(), schemas.Payment{CostUSD: new(0.1)}); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if err := p.begin(t.Context(), 0.8); !errors.Is(err, llms.ErrBudget) {
		t.Errorf("reserving more than the limit: %v", err)
	}
	p.end(0.5, 0)
	if got := p.total(); got < 0.299 || got > 0.301 {
		t.Errorf("spent %v", got)
	}
}
