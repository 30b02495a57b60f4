package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// The test binary starts itself as the processes of a cluster.
const (
	childDir   = "FLEET_TEST_DIR"
	childRole  = "FLEET_TEST_ROLE" // node, worker, coordinator
	childName  = "FLEET_TEST_NAME"
	childURL   = "FLEET_TEST_NATS"
	childCost  = "FLEET_TEST_COST"  // limits.total_cost
	childPorts = "FLEET_TEST_PORTS" // of a node, as JSON: client port, own route port, route ports of the other nodes
)

const (
	clusterTasks = 36
	clusterLease = 40 * time.Second // elections take up to 9 s, or longer on a busy machine
)

// heldCalls is the number of calls that the model answers before it waits for the release file.
const heldCalls = 50

// releaseFile returns the path of the release file, which makes the models of a run with a budget
// answer all further calls.
func releaseFile(dir string) string { return filepath.Join(filepath.Dir(dir), "release") }

func release(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(releaseFile(dir), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// clusterChild runs this process as the part of a cluster that childRole names. It returns false
// if this process is not a child.
func clusterChild() bool {
	var err error
	switch os.Getenv(childRole) {
	case "":
		return false
	case "node":
		err = runNode()
	case "worker":
		err = withHarness(func(ctx context.Context, h *harness, conn *engine.Conn) error {
			return h.join(ctx, conn, os.Getenv(childName))
		})
	case "coordinator":
		err = withHarness(func(ctx context.Context, h *harness, _ *engine.Conn) error {
			rep, err := h.run(ctx)
			return errors.Join(err, json.NewEncoder(os.Stdout).Encode(rep))
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// withHarness calls do with a harness that the environment of this child process configures.
func withHarness(do func(context.Context, *harness, *engine.Conn) error) error {
	conn, err := engine.Dial(context.Background(), engine.Cluster{URL: os.Getenv(childURL), Patience: 2 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	h := newHarness(os.Getenv(childDir), clusterTasks)
	h.Config.RunID, h.Config.Lease, h.Config.Workers = "cluster-1", clusterLease, 2
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error {
		time.Sleep(300 * time.Millisecond) // the time that a tool takes
		return nil
	}
	if usd := os.Getenv(childCost); usd != "" {
		if h.Config.MaxCost, err = strconv.ParseFloat(usd, 64); err != nil {
			return err
		}
		h.OnAsk = func(context.Context, schemas.Job, int) error {
			time.Sleep(300 * time.Millisecond) // the time that a model takes
			for h.Count("ask ") >= heldCalls {
				if _, err := os.Stat(releaseFile(h.Dir)); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		}
	}
	h.conn = conn
	return do(context.Background(), h, conn)
}

// runNode runs one of three servers until the process is killed.
func runNode() error {
	var ports []int
	if err := json.Unmarshal([]byte(os.Getenv(childPorts)), &ports); err != nil {
		return err
	}
	opts := &server.Options{
		ServerName: os.Getenv(childName), Host: "127.0.0.1", Port: ports[0], NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: os.Getenv(childDir), SyncAlways: true, SyncInterval: 2 * time.Minute,
		Cluster: server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: ports[1]},
	}
	for _, port := range ports[2:] {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	srv.Start()
	srv.WaitForShutdown()
	return nil
}

// startProcess starts a process of the cluster and kills it at the end of the test.
func startProcess(t *testing.T, role, name string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, childRole+"="+role, childName+"="+name)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if role == "coordinator" {
		cmd.Stdout = &strings.Builder{}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// usedPorts holds the ports that freePorts has returned to any test.
var usedPorts sync.Map

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for len(ports) < n { // below the ephemeral ports of the kernel
		port := 10_000 + rand.IntN(20_000)
		if _, used := usedPorts.LoadOrStore(port, true); used {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports
}

// startNodes starts a cluster of three nodes and returns its processes and URLs.
func startNodes(t *testing.T) (nodes []*exec.Cmd, urls string) {
	t.Helper()
	ports := freePorts(t, 6)
	var list []string
	for i := range 3 {
		nodePorts, err := json.Marshal(append([]int{ports[i], ports[3+i]}, slices.Delete(slices.Clone(ports[3:]), i, i+1)...))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("n%d", i+1)
		nodes = append(nodes, startProcess(t, "node", name, childDir+"="+t.TempDir(), childPorts+"="+string(nodePorts)))
		list = append(list, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	return nodes, strings.Join(list, ",")
}

// poll reads the status of the run until it is as wanted. Without a pause, reading would take the CPU time that the
// cluster needs.
func poll(t *testing.T, what string, conn *engine.Conn, reached func(observe.Status) bool) {
	t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); <-tick.C {
		s, ok, err := fleet.ReadStatus(t.Context(), conn, "cluster-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if ok && reached(s) {
			return
		}
	}
	t.Fatalf("not within 5 minutes: %s", what)
}

// A cluster has three nodes, three workers and a coordinator, each a process. One process of each
// kind is killed during the run. The run still completes, each episode is staged once, no recorded
// reply is requested again, and the numbers of the status always add up.
func TestCluster(t *testing.T) {
	suite.Cluster.Require(t)
	t.Parallel()
	nodes, urls := startNodes(t)
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: urls, Patience: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if conn.Replicas() != 3 {
		t.Fatalf("%d replicas of each stream on three nodes, want 3", conn.Replicas())
	}
	dir := filepath.Join(t.TempDir(), "run")
	env := []string{childDir + "=" + dir, childURL + "=" + urls}
	coordinator := startProcess(t, "coordinator", "c", env...)
	workers := []*exec.Cmd{startProcess(t, "worker", "w1", env...), startProcess(t, "worker", "w2", env...), startProcess(t, "worker", "w3", env...)}

	kill := func(what string, cmd *exec.Cmd) {
		t.Logf("killing %s", what)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	waitForDone := func(done int) {
		t.Helper()
		poll(t, fmt.Sprint(done, " jobs done"), conn, func(s observe.Status) bool {
			if s.Selected != s.Reused+s.Ran+s.Running+s.Waiting+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed || min(s.Waiting, s.Running, s.Missing) < 0 || s.Running > 6 {
				t.Fatalf("the status does not add up: %+v", s)
			}
			staged, _ := filepath.Glob(filepath.Join(dir, "staging", "*", "*"))
			if s.Done > len(staged) {
				t.Fatalf("%d done, %d staged: %+v", s.Done, len(staged), s)
			}
			return s.Done >= done
		})
	}
	waitForDone(4)
	kill("a worker", workers[0])
	kill("a node", nodes[2])
	waitForDone(12)
	kill("the coordinator", coordinator)
	waitForDone(15) // the workers continue without a coordinator
	coordinator = startProcess(t, "coordinator", "c", env...)
	waitForDone(clusterTasks)
	if err := coordinator.Wait(); err != nil {
		t.Fatalf("the coordinator: %v", err)
	}
	for i, w := range workers[1:] {
		if err := w.Wait(); err != nil {
			t.Errorf("worker %d: %v", i+2, err)
		}
	}
	checkCluster(t, dir, coordinator.Stdout.(*strings.Builder).String())
}

// checkCluster compares the coordinator's report with the staged episodes and the notes of the
// model calls.
func checkCluster(t *testing.T, dir, printed string) {
	t.Helper()
	var rep observe.Report
	if err := json.Unmarshal([]byte(printed), &rep); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	h := newHarness(dir, clusterTasks)
	l, staged := rep.Ledger, h.Staged(t)
	if rep.Verdict != observe.Complete || l.Selected != clusterTasks || l.Reused+l.Ran != clusterTasks || l.Missing != 0 || len(staged) != clusterTasks {
		t.Errorf("%s: %+v, %d staged", rep.Verdict, l, len(staged))
	}
	for name, s := range staged {
		if len(s.Steps) != turns+2 || *s.Episode.Outcome != schemas.OutcomeResolved {
			t.Errorf("%s: %d steps, %s", name, len(s.Steps), *s.Episode.Outcome)
		}
	}
	raw, err := os.ReadFile(h.NotesFile())
	if err != nil {
		t.Fatal(err)
	}
	asked, repeated := map[string]int{}, 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "ask ") {
			if asked[line]++; asked[line] > 1 {
				repeated++
			}
		}
	}
	// A reply that was in flight when a worker was killed was not recorded.
	if len(asked) != clusterTasks*turns || int64(repeated) > int64(rep.Calls.LostInFlight) || rep.Calls.LostInFlight > 2 {
		t.Errorf("%d model calls, %d repeated, %d lost", len(asked), repeated, rep.Calls.LostInFlight)
	}
	t.Logf("%d staged, %d model calls, %d lost in flight, %d retries", len(staged), len(asked), rep.Calls.LostInFlight, rep.Friction.InfraRetries)
}
