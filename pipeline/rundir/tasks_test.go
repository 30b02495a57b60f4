package rundir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
)

// A run directory grows in tasks and attempts, and runs any selection of them. Nothing is run
// twice, and the numbers add up.
func TestRunDirectoryGrowsInTasks(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	type numbers struct{ Selected, Reused, Ran, Unselected, Asked int }
	check := func(what string, want numbers) {
		t.Helper()
		rep := h.MustRun(t)
		l := pipelinetest.Ledger(t, rep)
		if got := (numbers{l.Selected, l.Reused, l.Ran, l.Unselected, h.Count("ask ")}); got != want || rep.Verdict != "COMPLETE" {
			t.Errorf("%s: %s, %+v, want %+v", what, rep.Verdict, got, want)
		}
		h.CheckCalls(t, rep, 0, 0) // the calls of all episodes count, selected or not
		if s, err := h.Status(t); err != nil || s.Phase != "completed" || s.Selected != want.Selected || s.Done != want.Selected {
			t.Errorf("%s: status %+v, %v", what, s, err)
		}
	}
	const turns = pipelinetest.Turns
	check("two tasks", numbers{2, 0, 2, 0, 2 * turns})
	h.Tasks = 4
	check("four tasks", numbers{4, 2, 2, 0, 4 * turns})
	h.Config.Tasks = []string{"bug-03", "bug-00"}
	check("a selection", numbers{2, 2, 0, 2, 4 * turns})
	h.Config.Attempts = 2
	check("more attempts at a selection", numbers{4, 2, 2, 2, 6 * turns})
	h.Config.Tasks, h.Config.Attempts, h.Tasks = nil, 1, 3
	check("a task is gone", numbers{3, 3, 0, 3, 6 * turns})
	h.Tasks, h.Config.Attempts = 5, 2
	check("everything", numbers{10, 6, 4, 0, 10 * turns})
	if n := len(h.Staged(t)); n != 10 {
		t.Errorf("%d staged episodes", n)
	}
}

// A narrower selection that completes keeps the recorded steps of unfinished episodes, which a
// later invocation resumes without asking the model again.
func TestNarrowSelectionKeepsUnfinishedEpisodes(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.Workers = 1
	h.OnVerify = failFor("bug-01")
	if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Ran != 2 || l.Outcomes["infra"] != 1 {
		t.Fatalf("%+v", l)
	}
	asked := h.Count("ask ")
	h.Config.Tasks = []string{"bug-00"}
	if rep := h.MustRun(t); rep.Verdict != "COMPLETE" {
		t.Errorf("%s", rep.Verdict)
	}
	h.Config.Tasks, h.OnVerify, h.Config.Retry = nil, nil, []string{"infra"}
	if rep := h.MustRun(t); rep.Verdict != "COMPLETE" || rep.Ledger.Reused != 1 || h.Count("ask ") != asked {
		t.Errorf("%s, %+v: the model was asked %d times, %d before", rep.Verdict, rep.Ledger, h.Count("ask "), asked)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "engine")); !os.IsNotExist(err) {
		t.Errorf("private working data is left: %v", err)
	}
}

// A task with another content is refused by name, unless it is not selected. Nothing changes.
func TestChangedTaskIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.MustRun(t)
	path := filepath.Join(h.Dir, "tasks.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h.Changed, h.Tasks = "bug-01", 3
	_, err = h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 2 || !strings.HasSuffix(err.Error(), "began with another version of a task: fake/bug-01 has changed since") {
		t.Errorf("exit %d: %v", code, err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("tasks.json changed")
	}
	h.Config.Tasks = []string{"bug-00", "bug-02"}
	if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Reused != 1 || l.Ran != 1 || l.Unselected != 1 {
		t.Errorf("%+v", l)
	}
}

// A directory of a version that did not record its tasks resumes with the same tasks only. Then it
// can grow.
func TestLegacyDirectoryGrowsOnceItsTasksAreKnown(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.MustRun(t)
	info := filepath.Join(h.Dir, "run.json")
	raw, err := os.ReadFile(info)
	if err != nil {
		t.Fatal(err)
	}
	write := func(set string) {
		t.Helper()
		if err := os.WriteFile(info, []byte(strings.Replace(string(raw), `"identity": {`, `"identity": { "tasks": "`+set+`",`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(h.Dir, "tasks.json")); err != nil {
		t.Fatal(err)
	}
	write("2 tasks (unknown)")
	_, err = h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 2 || !strings.Contains(err.Error(), "holds a run with other tasks (2 tasks (unknown), not 2 tasks (") {
		t.Fatalf("exit %d: %v", code, err)
	}
	write(regexp.MustCompile(`not (2 tasks \([0-9a-f]{12}\))`).FindStringSubmatch(err.Error())[1])
	h.MustRun(t)
	h.Tasks = 3
	if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Reused != 2 || l.Ran != 1 {
		t.Errorf("%+v", l)
	}
}
