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

// The test binary starts itself as the parts of a cluster.
const (
	childDir   = "FLEET_TEST_DIR"
	childRole  = "FLEET_TEST_ROLE" // node, worker, coordinator
	childName  = "FLEET_TEST_NAME"
	childURL   = "FLEET_TEST_NATS"
	childCost  = "FLEET_TEST_COST"  // limits.total_cost
	childPorts = "FLEET_TEST_PORTS" // of a node: client,route,route,route; its own route first
)

const (
	clusterTasks = 36
	clusterLease = 40 * time.Second // elections take up to 9 s, on a busy machine more
)

// heldCalls is how many calls the model answers before it waits for the release file.
const heldCalls = 50

// releaseFile tells the models of a run with a budget to answer all further calls.
func releaseFile(dir string) string { return filepath.Join(filepath.Dir(dir), "release") }

func release(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(releaseFile(dir), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// clusterChild plays a part of a cluster and reports whether this process has one.
func clusterChild() bool {
	var err error
	switch os.Getenv(childRole) {
	case "":
		return false
	case "node":
		err = node()
	case "worker":
		err = clusterPart(func(ctx context.Context, h *harness, conn *engine.Conn) error {
			return h.join(ctx, conn, os.Getenv(childName))
		})
	case "coordinator":
		err = clusterPart(func(ctx context.Context, h *harness, _ *engine.Conn) error {
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

func clusterPart(do func(context.Context, *harness, *engine.Conn) error) error {
	conn, err := engine.Dial(context.Background(), engine.Cluster{URL: os.Getenv(childURL), Patience: 2 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	h := newHarness(os.Getenv(childDir), clusterTasks)
	h.Config.RunID, h.Config.Lease, h.Config.Workers = "cluster-1", clusterLease, 2
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error {
		time.Sleep(300 * time.Millisecond) // what a tool takes
		return nil
	}
	if usd := os.Getenv(childCost); usd != "" {
		if h.Config.MaxCost, err = strconv.ParseFloat(usd, 64); err != nil {
			return err
		}
		h.OnAsk = func(context.Context, schemas.Job, int) error {
			time.Sleep(300 * time.Millisecond) // what a model takes
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

// node is one server of three, until it is killed.
func node() error {
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

// part starts a process of the cluster, which is killed at the end of the test.
func part(t *testing.T, role, name string, env ...string) *exec.Cmd {
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

// givenPorts are those that freePorts has named, to whichever test.
var givenPorts sync.Map

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for len(ports) < n { // below those that the kernel gives away
		port := 10_000 + rand.IntN(20_000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
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

// threeNodes starts a cluster; its processes and its URL.
func threeNodes(t *testing.T) (nodes []*exec.Cmd, urls string) {
	t.Helper()
	ports := freePorts(t, 6)
	var list []string
	for i := range 3 {
		own, err := json.Marshal(append([]int{ports[i], ports[3+i]}, slices.Delete(slices.Clone(ports[3:]), i, i+1)...))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("n%d", i+1)
		nodes = append(nodes, part(t, "node", name, childDir+"="+t.TempDir(), childPorts+"="+string(own)))
		list = append(list, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	return nodes, strings.Join(list, ",")
}

// Three nodes, three workers, one coordinator, all processes: one of each is
// killed on the way. The run completes, each episode is staged once, no recorded
// reply is asked for again, and the status adds up throughout.
func TestCluster(t *testing.T) {
	suite.Cluster.Need(t)
	t.Parallel()
	nodes, urls := threeNodes(t)
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: urls, Patience: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if conn.Replicas() != 3 {
		t.Fatalf("%d copies of each stream on three nodes", conn.Replicas())
	}
	dir := filepath.Join(t.TempDir(), "run")
	env := []string{childDir + "=" + dir, childURL + "=" + urls}
	coordinator := part(t, "coordinator", "c", env...)
	workers := []*exec.Cmd{part(t, "worker", "w1", env...), part(t, "worker", "w2", env...), part(t, "worker", "w3", env...)}

	kill := func(what string, cmd *exec.Cmd) {
		t.Logf("killing %s", what)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	until := func(done int) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
			s, ok, err := fleet.ReadStatus(t.Context(), conn, "cluster-1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			if s.Selected != s.Reused+s.Ran+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed || min(s.Waiting, s.Running, s.Missing) < 0 || s.Running > 6 {
				t.Fatalf("the status does not add up: %+v", s)
			}
			staged, _ := filepath.Glob(filepath.Join(dir, "staging", "*", "*"))
			if s.Done > len(staged) {
				t.Fatalf("%d done, %d staged: %+v", s.Done, len(staged), s)
			}
			if s.Done >= done {
				return
			}
		}
		t.Fatalf("never %d done", done)
	}
	until(4)
	kill("a worker", workers[0])
	kill("a node", nodes[2])
	until(12)
	kill("the coordinator", coordinator)
	until(15) // the workers go on without it
	coordinator = part(t, "coordinator", "c", env...)
	until(clusterTasks)
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

// checkCluster compares the coordinator's report with the staged episodes and the model server.
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
	raw, err := os.ReadFile(h.Notes())
	if err != nil {
		t.Fatal(err)
	}
	asked, twice := map[string]int{}, 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "ask ") {
			if asked[line]++; asked[line] > 1 {
				twice++
			}
		}
	}
	// A reply that was on its way when a worker was killed was recorded nowhere.
	if len(asked) != clusterTasks*turns || int64(twice) > int64(rep.Calls.LostInFlight) || rep.Calls.LostInFlight > 2 {
		t.Errorf("%d questions, %d of them twice, %d lost", len(asked), twice, rep.Calls.LostInFlight)
	}
	t.Logf("%d staged, %d questions, %d lost in flight, %d retries", len(staged), len(asked), rep.Calls.LostInFlight, rep.Friction.InfraRetries)
}
