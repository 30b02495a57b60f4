package fleet_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// A cluster has three nodes, three workers and a coordinator, each a process. Workers, a node and
// the coordinator are killed during the run. The run uses up its budget and never exceeds it,
// neither in the shared state at any moment nor in the calls to the model. With a higher limit the
// run completes.
func TestClusterBudget(t *testing.T) {
	suite.Cluster.Require(t)
	t.Parallel()
	nodes, urls := startNodes(t)
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: urls, Patience: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const limit = 0.9
	dir := filepath.Join(t.TempDir(), "run")
	env := []string{childDir + "=" + dir, childURL + "=" + urls, childCost + "=0.9"}
	coordinator := startProcess(t, "coordinator", "c", env...)
	workers := []*exec.Cmd{startProcess(t, "worker", "w1", env...), startProcess(t, "worker", "w2", env...), startProcess(t, "worker", "w3", env...)}
	kill := func(what string, cmd *exec.Cmd) {
		t.Logf("killing %s", what)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	waitUntil := func(what string, reached func(observe.Status) bool) {
		t.Helper()
		poll(t, what, conn, func(s observe.Status) bool {
			if s.Budget == nil || s.Budget.LimitUSD == 0 {
				return false
			}
			if b := s.Budget; b.SpentUSD+b.ReservedUSD > limit+1e-9 || b.SpentUSD < 0 || b.ReservedUSD < 0 {
				t.Fatalf("the budget of $%.2f is exceeded or negative: %+v", limit, *b)
			}
			return reached(s)
		})
	}
	spent := func(usd float64) func(observe.Status) bool {
		return func(s observe.Status) bool { return s.Budget.SpentUSD >= usd && s.Budget.ReservedUSD > 0 }
	}
	waitUntil("a tenth spent", spent(0.09))
	kill("a worker", workers[0])
	kill("a node", nodes[2])
	waitUntil("a third spent", spent(0.3))
	kill("the coordinator", coordinator)
	kill("a worker", workers[1])
	release(t, dir)
	coordinator = startProcess(t, "coordinator", "c", env...)
	workers[0] = startProcess(t, "worker", "w4", env...)
	waitUntil("stopped", func(s observe.Status) bool { return s.Phase == string(engine.Stopped) && s.Budget.UsedUp })

	rep := waitForReport(t, coordinator)
	c, h := rep.Calls, newHarness(dir, clusterTasks)
	if asked := float64(h.Count("ask ")) * callCost; rep.ExitCode != 5 || rep.Verdict != observe.OverBudget || c.Spent() > limit+1e-9 || asked > limit+1e-9 || c.Spent() < limit/2 {
		t.Errorf("exit %d, %s; the model was paid $%.2f; %+v", rep.ExitCode, rep.Verdict, asked, c)
	}
	for _, w := range []*exec.Cmd{workers[0], workers[2]} {
		if err := w.Wait(); err != nil {
			t.Errorf("a worker of a run whose budget is used up: %v", err)
		}
	}
	t.Logf("%+v", c)

	env[2] = childCost + "=100"
	coordinator = startProcess(t, "coordinator", "c", env...)
	last := []*exec.Cmd{startProcess(t, "worker", "w5", env...), startProcess(t, "worker", "w6", env...)}
	rep = waitForReport(t, coordinator)
	if l := rep.Ledger; rep.Verdict != observe.Complete || l.Missing != 0 || len(h.Staged(t)) != clusterTasks || rep.Calls.Spent() < c.Spent() {
		t.Errorf("%s: %+v, %d staged, %+v", rep.Verdict, l, len(h.Staged(t)), rep.Calls)
	}
	if asked := float64(h.Count("ask ")) * callCost; asked > rep.Calls.Spent()+1e-9 {
		t.Errorf("the model was paid $%.2f; %+v", asked, rep.Calls)
	}
	for _, w := range last {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// waitForReport waits for a coordinator to exit and reads its report.
func waitForReport(t *testing.T, coordinator *exec.Cmd) (rep observe.Report) {
	t.Helper()
	_ = coordinator.Wait()
	printed := coordinator.Stdout.(*strings.Builder).String()
	if err := json.Unmarshal([]byte(printed), &rep); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	return rep
}
