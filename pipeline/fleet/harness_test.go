package fleet_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

const (
	turns     = pipelinetest.Turns
	callCost  = pipelinetest.CallCost
	callWorst = pipelinetest.CallWorst
)

// harness coordinates runs over a cluster, and executes their jobs.
type harness struct {
	*pipelinetest.Harness
	conn *engine.Conn // of the next coordinator
	spec string       // Config.RunSpec
	poll time.Duration
}

func newHarness(dir string, tasks int) *harness {
	return &harness{poll: 20 * time.Millisecond, Harness: pipelinetest.New(dir, tasks, func(ctx context.Context, dir string) (sinks.Store, error) {
		return stores.Open(ctx, dir, stores.S3Config{})
	})}
}

func (h *harness) parts(ctx context.Context, conn *engine.Conn) (fleet.Config, pipeline.Deps, error) {
	cfg, deps, err := h.Parts(ctx)
	return fleet.Config{Config: cfg, Conn: conn, Poll: h.poll, RunSpec: []byte(h.spec)}, deps, err
}

// run coordinates the run.
func (h *harness) run(ctx context.Context) (observe.Report, error) {
	cfg, deps, err := h.parts(ctx, h.conn)
	if err != nil {
		return observe.Report{}, err
	}
	return fleet.Coordinate(ctx, cfg, deps)
}

// join waits until the run takes jobs, and then works on it.
func (h *harness) join(ctx context.Context, conn *engine.Conn, name string) error {
	for {
		entry, ok, err := conn.RunEntry(ctx, h.Config.RunID)
		if err != nil {
			return err
		}
		if ok && entry.Phase == engine.Working {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond): // reading takes the CPU time of the server
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return h.work(ctx, conn, name)
}

// work executes jobs of the run as a worker.
func (h *harness) work(ctx context.Context, conn *engine.Conn, name string) error {
	cfg, deps, err := h.parts(ctx, conn)
	if err != nil {
		return err
	}
	return fleet.Work(ctx, cfg, deps, engine.WorkerEntry{ID: name, Name: name})
}

// result is the result of a coordinator.
type result struct {
	rep    observe.Report
	err    error
	budget *observe.Budget // the shared budget after the last job, set by coordinateAndWatchBudget
}

// coordinate coordinates the run in the background.
func (h *harness) coordinate(ctx context.Context) <-chan result {
	out := make(chan result, 1)
	cfg, deps, err := h.parts(ctx, h.conn) // not in the goroutine, because the test changes h for the workers
	if err != nil {
		out <- result{err: err}
		return out
	}
	go func() {
		rep, err := fleet.Coordinate(ctx, cfg, deps)
		out <- result{rep: rep, err: err}
	}()
	return out
}

func startNATS(t *testing.T) (*server.Server, string) {
	t.Helper()
	srv := enginetest.NATS(t)
	return srv, srv.ClientURL()
}

func dialNATS(t *testing.T, url string) *engine.Conn {
	t.Helper()
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// newFleet returns a harness and a connection to a new cluster of one server.
func newFleet(t *testing.T, tasks int) (*harness, *engine.Conn) {
	t.Helper()
	_, url := startNATS(t)
	h := newRun(t, dialNATS(t, url), tasks)
	return h, h.conn
}

func newRun(t *testing.T, conn *engine.Conn, tasks int) *harness {
	h := newHarness(t.TempDir()+"/run", tasks)
	h.Config.RunID, h.Config.Lease, h.conn = "fleet-1", 30*time.Second, conn
	return h
}

func TestMain(m *testing.M) {
	enginetest.Main(m, func() bool { return os.Getenv(childRole) != "" && clusterChild() })
}
