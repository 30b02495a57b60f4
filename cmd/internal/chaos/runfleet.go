package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
)

const (
	nodes = 3
	slots = 2 // episodes at once per worker

	// lease is the lease of jobs. An election of a new leader takes 4 to 9 s.
	lease = 15 * time.Second
	// fleetStop is how long the fault Stop stops a worker: longer than a lease, so that
	// other workers get its jobs.
	fleetStop = lease + 5*time.Second
)

// clusterRun is a run over a cluster: nodes, a coordinator and workers. It restarts a process
// that ends, like a service manager. It implements faultInjector.
type clusterRun struct {
	t           *trial
	ctx         context.Context
	batchCtx    context.Context // canceled if the batch fails
	cancelBatch context.CancelFunc
	url         string
	wg          sync.WaitGroup
	working     atomic.Bool // a model request has arrived

	mu         sync.Mutex
	members    []*member
	closing    bool            // start no more processes
	complete   bool            // the coordinator exited with code 0
	torn       int             // number of kills that only StoreTorn can explain
	done       chan error      // receives one value when the batch ends
	deliveries map[string]int  // largest observed number of deliveries, by job id
	badStatus  map[string]bool // reported statuses whose figures do not add up
	drains     int             // even: the next Drain strikes the coordinator
}

// runFleet runs the batch over a cluster until its coordinator has finished, and then stops
// the fleet.
func (t *trial) runFleet(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &clusterRun{t: t, ctx: ctx, done: make(chan error, 1), deliveries: map[string]int{}, badStatus: map[string]bool{}}
	f.batchCtx, f.cancelBatch = context.WithCancel(ctx)
	defer func() { f.killAll(); cancel(); f.wg.Wait() }()
	t.faultInjector = f
	if t.server, err = serve(t.cfg, t.plan, f, t.report.struck); err != nil {
		return err
	}
	defer t.server.close()
	config, storePlanFile, err := t.writeFiles()
	if err != nil {
		return err
	}
	if err := f.startNodes(); err != nil {
		return err
	}
	run := []string{"run", "-c", config, "--run-dir", t.run, "--nats", f.url, "--json"}
	f.add(coordinatorRole, "coordinator", func() *exec.Cmd { return t.cfg.Run(ctx, storePlanFile, 0, run...) })
	for i := range t.cfg.Fleet {
		name := fmt.Sprintf("w%d", i+1)
		f.add(workerRole, name, func() *exec.Cmd {
			return t.cfg.Run(ctx, storePlanFile, 0, "worker", "--nats", f.url, "-n", strconv.Itoa(slots), "--name", name)
		})
	}
	conn, err := engine.Dial(f.batchCtx, engine.Cluster{URL: f.url, Patience: 2 * time.Minute})
	if err == nil {
		defer func() { _ = conn.Close() }()
		err = f.watch(conn)
	} else if f.batchCtx.Err() != nil && ctx.Err() == nil { // the batch ended first
		err = <-f.done
	} else {
		err = fmt.Errorf("watching the cluster: %w", err)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	complete := f.complete
	f.mu.Unlock()
	if !complete {
		return errors.Join(append(t.server.failures, t.countStoreFaults(storePlanFile))...)
	}
	f.stopRole(workerRole)
	if n := t.tornCount(storePlanFile); f.torn > n {
		t.breach("ended", "%d processes were killed for an unknown reason", f.torn-n)
	}
	return errors.Join(f.repeat(run), f.checkCluster(conn), errors.Join(t.server.failures...), t.countStoreFaults(storePlanFile))
}

// startNodes starts the NATS servers of the cluster.
func (f *clusterRun) startNodes() error {
	ports, err := freePorts(2 * nodes)
	if err != nil {
		return err
	}
	var urls []string
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		args := []string{"chaos", "node", "--name", name, "--dir", filepath.Join(f.t.cfg.Dir, "nodes", name), "--port", strconv.Itoa(ports[i]), "--route", strconv.Itoa(ports[nodes+i])}
		for j, port := range ports[nodes:] {
			if j != i {
				args = append(args, "--peers", strconv.Itoa(port))
			}
		}
		f.add(nodeRole, name, func() *exec.Cmd { return f.t.cfg.Child(f.ctx, args...) })
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	f.url = strings.Join(urls, ",")
	return nil
}

// add adds a member to the fleet and restarts its process until the end of the batch.
func (f *clusterRun) add(r role, name string, start func() *exec.Cmd) {
	m := &member{role: r, name: name, start: start}
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	f.wg.Go(func() {
		for f.runProcess(m) {
		}
	})
}

// runProcess runs one process of a member to its end and reports whether to start another.
func (f *clusterRun) runProcess(m *member) bool {
	f.mu.Lock()
	if f.closing || m.leaving || f.ctx.Err() != nil {
		f.mu.Unlock()
		return false
	}
	cmd := m.start()
	m.stdout, m.stderr, m.endedBy = &bytes.Buffer{}, &bytes.Buffer{}, map[Kind]bool{}
	cmd.Stdout, cmd.Stderr = m.stdout, m.stderr
	err := cmd.Start()
	if err == nil {
		m.cmd = cmd
		f.t.report.Starts++
		f.t.pids = append(f.t.pids, cmd.Process.Pid)
	}
	tooMany := f.t.report.Starts > 4*f.t.cfg.Faults+40
	f.mu.Unlock()
	if err != nil {
		f.fail(fmt.Errorf("starting %s: %w", m.name, err))
		return false
	}
	_ = cmd.Wait() // processEnded checks the exit code
	f.mu.Lock()
	defer f.mu.Unlock()
	m.cmd = nil
	return f.processEnded(m, cmd, tooMany)
}

// processEnded checks how a process ended and reports whether to start another. tooMany means
// that the batch has started more processes than its faults explain. The caller holds the lock.
func (f *clusterRun) processEnded(m *member, cmd *exec.Cmd, tooMany bool) (restart bool) {
	if f.closing || f.ctx.Err() != nil {
		return false
	}
	code := exitCode(cmd)
	f.t.report.Ends = append(f.t.report.Ends, m.name+" "+describeEnd(code, m.endedBy, m.stderr.String()))
	switch {
	case m.role == coordinatorRole && code == 0:
		f.complete = true
		f.end(f.t.readSummary(m.stdout.Bytes()))
		return false
	case code == -int(syscall.SIGKILL) && len(m.endedBy) == 0 && m.role != nodeRole:
		f.torn++
	case code > 0 && len(m.endedBy) == 0 && !f.working.Load():
		f.fail(refusal("the "+m.title(), code, m.stderr.String()))
		return false
	case !m.exitIsExplained(code):
		f.t.breach("ended", "%s", f.t.report.Ends[len(f.t.report.Ends)-1])
		f.fail(nil)
		return false
	case tooMany:
		f.t.breach("hung", "the run did not finish with %d processes", f.t.report.Starts)
		f.fail(nil)
		return false
	}
	return !m.leaving
}

// end records that the batch has ended, with its error. Only the first call counts.
func (f *clusterRun) end(err error) {
	select {
	case f.done <- err:
	default:
	}
}

// fail records that the batch cannot continue. err is nil if a breach says why.
func (f *clusterRun) fail(err error) {
	f.end(err)
	f.cancelBatch()
}

// watch checks the run repeatedly until the batch has ended.
func (f *clusterRun) watch(conn *engine.Conn) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	known, requests, since := map[string]string{}, 0, time.Now()
	for n := 0; ; n++ {
		if err := f.checkStatus(conn); err != nil && f.batchCtx.Err() == nil {
			return err
		}
		if n%10 == 0 {
			if err := f.t.checkStaged(f.ctx, known); err != nil {
				return err
			}
		}
		if n := f.t.server.requestCount(); n > requests {
			requests, since = n, time.Now()
		} else if time.Since(since) > maxSilence {
			f.t.breach("hung", "no model call arrived for %s", maxSilence)
			return nil
		}
		select {
		case err := <-f.done:
			if err != nil {
				return err
			}
			return f.t.checkStaged(f.ctx, known)
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		case <-tick.C:
		}
	}
}

// checkStatus reads the status of each run of the cluster and reports figures that do not add
// up. It also records how often each job was delivered.
func (f *clusterRun) checkStatus(conn *engine.Conn) error {
	runs, err := conn.Runs(f.batchCtx)
	if err != nil {
		return fmt.Errorf("reading the status: %w", err)
	}
	for _, r := range runs {
		s, ok, err := fleet.ReadStatus(f.batchCtx, conn, r.RunID, time.Now())
		if err != nil {
			return fmt.Errorf("reading the status: %w", err)
		}
		capacity := slots * f.t.cfg.Fleet
		if ok && (s.Selected != s.Reused+s.Ran+s.Running+s.Waiting+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed || min(s.Waiting, s.Missing) < 0 || s.Running > 2*capacity) {
			if text := fmt.Sprintf("%+v", s); !f.badStatus[text] {
				f.badStatus[text] = true
				f.t.breach("status", "%s", text)
			}
		}
		entries, err := conn.Entries(f.batchCtx, r.RunID)
		if err != nil {
			return fmt.Errorf("reading the jobs: %w", err)
		}
		for _, e := range entries {
			f.deliveries[e.ID] = max(f.deliveries[e.ID], e.Delivery)
		}
	}
	return nil
}

// stopRole interrupts the processes of a role and waits until they have ended.
func (f *clusterRun) stopRole(r role) {
	f.mu.Lock()
	for _, m := range f.members {
		if m.role == r && m.cmd != nil {
			_ = m.cmd.Process.Signal(syscall.SIGCONT)
			_ = m.cmd.Process.Signal(syscall.SIGINT)
		}
		m.leaving = m.leaving || m.role == r
	}
	f.mu.Unlock()
	for end := time.Now().Add(maxSilence); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		gone := !slices.ContainsFunc(f.members, func(m *member) bool { return m.role == r && m.cmd != nil })
		f.mu.Unlock()
		if gone {
			return
		}
	}
	f.t.breach("hung", "a %s did not end in %s", r, maxSilence)
}

// killAll kills the remaining processes.
func (f *clusterRun) killAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closing = true
	for _, m := range f.members {
		if m.cmd != nil {
			_ = m.cmd.Process.Kill()
		}
	}
}

// repeat repeats the command of the finished run. The command must find nothing to do, and it
// removes what the last killed process left on this machine.
func (f *clusterRun) repeat(run []string) error {
	var out struct {
		Ledger struct{ Selected, Reused, Ran int }
	}
	if err := f.t.runJSON(f.ctx, &out, run...); err != nil {
		return err
	}
	if l := out.Ledger; l.Reused != l.Selected || l.Ran != 0 {
		f.t.breach("lost", "the repeated command did not find all episodes: %+v", l)
	}
	return nil
}

// checkCluster looks for data that the finished run left on the cluster, and adds up the
// repeated deliveries.
func (f *clusterRun) checkCluster(conn *engine.Conn) error {
	bytesByRun, err := conn.BytesByRun(f.ctx)
	if err != nil {
		return fmt.Errorf("listing the data on the cluster: %w", err)
	}
	for id, n := range bytesByRun {
		f.t.breach("left_stream", "the cluster holds %d bytes of run %s", n, id)
	}
	for _, n := range f.deliveries {
		f.t.report.Redeliveries += max(0, n-1)
	}
	return nil
}

// requestReceived implements faultInjector.
func (f *clusterRun) requestReceived() { f.working.Store(true) }

// strike implements faultInjector.
func (f *clusterRun) strike(fault processFault, client string) (found bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	target := map[Kind]role{Worker: workerRole, Coordinator: coordinatorRole, Node: nodeRole, Guest: workerRole, Container: workerRole, Stop: workerRole, Drain: workerRole, StoreTorn: workerRole}[fault.Kind]
	if fault.Kind == Drain && f.drains%2 == 0 {
		target = coordinatorRole
	}
	m := f.choose(target, fault.At, client)
	if m == nil || f.closing {
		return false, nil
	}
	p := m.cmd.Process
	switch fault.Kind {
	case Guest:
		return killGuest(p.Pid, f.t.cfg.Guest, fault.At)
	case Container:
		return removeContainer(p.Pid, fault.At)
	case Stop:
		f.wg.Go(func() { resumeAfter(f.ctx, p, fleetStop) })
		return true, p.Signal(syscall.SIGSTOP)
	case Drain:
		f.drains++
		m.endedBy[Drain] = true
		return true, p.Signal(syscall.SIGINT)
	}
	m.endedBy[fault.Kind] = true
	return true, p.Kill()
}

// choose returns a member of a role whose process is alive: the worker that sends requests
// from the address client if it can be found, or else one by number. It returns a node only if
// all nodes are alive. It returns nil if there is no such member.
func (f *clusterRun) choose(target role, number int, client string) *member {
	var alive []*member
	for _, m := range f.members {
		if m.role == target && m.alive() {
			alive = append(alive, m)
		}
	}
	if len(alive) == 0 || target == nodeRole && len(alive) < nodes {
		return nil
	}
	if target == workerRole {
		if inode := socketInode(client); inode != "" {
			if i := slices.IndexFunc(alive, func(m *member) bool { return ownsSocket(m.cmd.Process.Pid, inode) }); i >= 0 {
				return alive[i]
			}
		}
	}
	return alive[number%len(alive)]
}
