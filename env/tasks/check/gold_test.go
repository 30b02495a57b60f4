package check

import (
	"strings"
	"testing"
)

// A gold patch that cannot fix anything is refused with the reason.
func TestUselessGoldPatchesAreRefused(t *testing.T) {
	cfg := config(t)
	cfg.Runs, cfg.Isolated = 1, -1
	onlyTests := till.with(project{"tests/test_money.py": strings.Replace(till["tests/test_money.py"], "]), 3)", "]), 2)", 1)})
	for name, c := range map[string]struct{ gold, want string }{
		"no change":     {"--- a/README\n+++ b/README\n@@ -1 +1 @@\n-A till.\n+A till.\n", "it changes no file"},
		"tests alone":   {patch(t, cfg, till, onlyTests), "it changes only tests and their settings (tests/test_money.py)"},
		"another state": {"--- a/till/money.py\n+++ b/till/money.py\n@@ -1 +1 @@\n-import x\n+import y\n", "it does not apply"},
	} {
		for lists, task := range map[string]bool{"with lists": true, "without": false} {
			it := tillTask(c.gold)
			if !task {
				it.Tests.FailToPass, it.Tests.PassToPass = nil, nil
			}
			rep, err := Task(t.Context(), cfg, it, till.tree(t))
			if err != nil || rep.Status != GoldFails || !strings.Contains(rep.Reason, c.want) || rep.Before != nil {
				t.Errorf("%s, %s: %s %s, %v", name, lists, rep.Status, rep.Reason, err)
			}
		}
	}
}

// A task without tests, or whose lists contain no test that shows the bug, is refused.
func TestTasksWithoutTestsAreRefused(t *testing.T) {
	cfg := config(t)
	cfg.Runs, cfg.Isolated = 1, -1
	gold := patch(t, cfg, till, till.with(project{"till/money.py": tillFixed}))
	bare := tillTask(gold)
	bare.Tests.FailToPass, bare.Tests.PassToPass = nil, nil
	rep, err := Task(t.Context(), cfg, bare, project{"till/__init__.py": "", "till/money.py": till["till/money.py"]}.tree(t))
	if err != nil || rep.Status.Usable() || !strings.Contains(rep.Reason, "without tests") {
		t.Errorf("%s %s, %v", rep.Status, rep.Reason, err)
	}
	silent := tillTask(gold)
	silent.Tests.FailToPass = nil
	rep, err = Task(t.Context(), cfg, silent, till.tree(t))
	if err != nil || rep.Status != NotFailing || !strings.Contains(rep.Reason, "no test is listed") {
		t.Errorf("%s %s, %v", rep.Status, rep.Reason, err)
	}
}
