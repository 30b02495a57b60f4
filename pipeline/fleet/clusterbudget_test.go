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
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// Three nodes, three workers that ask models, one coordinator, all processes: workers, a
// node and the coordinator are killed on the way. The budget is used up and never exceeded,
// neither in the shared state at any moment nor by the calls to the model. With a higher limit the
// run completes.
func TestClusterBudget(t *testing.T) {
	suite.Cluster.Need(t)
	t.Parallel()
	nodes, urls := threeNodes(t)
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: urls, Patience: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const limit = 0.9
	dir := filepath.Join(t.TempDir(), "run")
	env := []string{childDir + "=" + dir, childURL + "=" + urls, childCost + "=0.9"}
	coordinator := part(t, "coordinator", "c", env...)
	workers := []*exec.Cmd{part(t, "worker", "w1", env...), part(t, "worker", "w2", env...), part(t, "worker", "w3", env...)}
	kill := func(what string, cmd *exec.Cmd) {
		t.Logf("killing %s", what)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	until := func(what string, reached func(observe.Status) bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
			s, ok, err := fleet.ReadStatus(t.Context(), conn, "cluster-1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if ok && s.Budget != nil && s.Budget.LimitUSD > 0 {
				if b := s.Budget; b.SpentUSD+b.ReservedUSD > limit+1e-9 || b.SpentUSD < 0 || b.ReservedUSD < 0 {
					t.Fatalf("of $%.2f: %+v", limit, *b)
				}
				if reached(s) {
					return
				}
			}
		}
		t.Fatalf("never %s", what)
	}
	spent := func(usd float64) func(observe.Status) bool {
		return func(s observe.Status) bool { return s.Budget.SpentUSD >= usd && s.Budget.ReservedUSD > 0 }
	}
	until("a tenth spent", spent(0.09))
	kill("a worker", workers[0])
	kill("a node", nodes[2])
	until("a third spent", spent(0.3))
	kill("the coordinator", coordinator)
	kill("a worker", workers[1])
	release(t, dir)
	coordinator = part(t, "coordinator", "c", env...)
	workers[0] = part(t, "worker", "w4", env...)
	until("stopped", func(s observe.Status) bool { return s.Phase == string(engine.Stopped) && s.Budget.Over })

	rep := ended(t, coordinator)
	c, h := rep.Calls, newHarness(dir, clusterTasks)
	if asked := float64(h.Count("ask ")) * callCost; rep.ExitCode != 5 || rep.Verdict != observe.OverBudget || c.Spent() > limit+1e-9 || asked > limit+1e-9 || c.Spent() < limit/2 {
		t.Errorf("exit %d, %s; the model was paid $%.2f; %+v", rep.ExitCode, rep.Verdict, asked, c)
	}
	for _, w := range []*exec.Cmd{workers[0], workers[2]} {
		if err := w.Wait(); err != nil {
			t.Errorf("a worker of a run without money: %v", err)
		}
	}
	t.Logf("%+v", c)

	env[2] = childCost + "=100"
	coordinator = part(t, "coordinator", "c", env...)
	last := []*exec.Cmd{part(t, "worker", "w5", env...), part(t, "worker", "w6", env...)}
	rep = ended(t, coordinator)
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

// ended waits for a coordinator and reads its report.
func ended(t *testing.T, coordinator *exec.Cmd) (rep observe.Report) {
	t.Helper()
	_ = coordinator.Wait()
	printed := coordinator.Stdout.(*strings.Builder).String()
	if err := json.Unmarshal([]byte(printed), &rep); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	return rep
}
