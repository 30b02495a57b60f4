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
	slots = 2 // of a worker

	// lease is the lease of jobs; an election takes 4 to 9 s.
	lease = 15 * time.Second
	// fleetStop is how long the fault Stop stops a process of a fleet: longer than a
	// lease, so that other workers get its jobs.
	fleetStop = lease + 5*time.Second
)

// clusterRun is a run over a cluster: nodes, a coordinator and workers. A process that ends
// is started again, like a service.
type clusterRun struct {
	t           *trial
	ctx         context.Context
	batchCtx    context.Context // canceled if the batch fails
	cancelBatch context.CancelFunc
	url         string
	wg          sync.WaitGroup
	working     atomic.Bool // a model call has arrived

	mu       sync.Mutex
	members  []*member
	closing  bool            // start no more processes
	complete bool            // the coordinator ended with all done
	torn     int             // process ends that only a store fault explains
	done     chan error      // receives once how the batch ended
	handed   map[string]int  // observed deliveries by job id
	adrift   map[string]bool // statuses that did not add up
	drainOne int             // even: the next drain strikes the coordinator
}

// playFleet runs the batch over a cluster until its coordinator has finished, and stops
// the fleet.
func (t *trial) playFleet(ctx context.Context) (err error) {
	ctx, over := context.WithCancel(ctx)
	f := &clusterRun{t: t, ctx: ctx, done: make(chan error, 1), handed: map[string]int{}, adrift: map[string]bool{}}
	f.batchCtx, f.cancelBatch = context.WithCancel(ctx)
	defer func() { f.clear(); over(); f.wg.Wait() }()
	t.processFaults = f
	if t.server, err = serve(t.cfg, t.plan, f, t.report.struck); err != nil {
		return err
	}
	defer t.server.close()
	config, storePlanFile, err := t.lay()
	if err != nil {
		return err
	}
	if err := f.startNodes(); err != nil {
		return err
	}
	run := []string{"run", "-c", config, "--run-dir", t.run, "--nats", f.url, "--json"}
	f.add(aCoordinator, "coordinator", func() *exec.Cmd { return t.cfg.Run(ctx, storePlanFile, 0, run...) })
	for i := range t.cfg.Fleet {
		name := fmt.Sprintf("w%d", i+1)
		f.add(aWorker, name, func() *exec.Cmd {
			return t.cfg.Run(ctx, storePlanFile, 0, "worker", "--nats", f.url, "-n", strconv.Itoa(slots), "--name", name)
		})
	}
	conn, err := engine.Dial(f.batchCtx, engine.Cluster{URL: f.url, Patience: 2 * time.Minute})
	if err == nil {
		defer func() { _ = conn.Close() }()
		err = f.follow(conn)
	} else if f.batchCtx.Err() != nil && ctx.Err() == nil { // the batch ended before
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
		return errors.Join(append(t.server.failures, t.countStored(storePlanFile))...)
	}
	f.dismiss(aWorker)
	if n := t.torn(storePlanFile); f.torn > n {
		t.breach("ended", "%d processes were killed for an unknown reason", f.torn-n)
	}
	return errors.Join(f.again(run), f.held(conn), errors.Join(t.server.failures...), t.countStored(storePlanFile))
}

// startNodes starts the cluster.
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
		f.add(aNode, name, func() *exec.Cmd { return f.t.cfg.Child(f.ctx, args...) })
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	f.url = strings.Join(urls, ",")
	return nil
}

// add adds a member to the fleet and restarts it until the end.
func (f *clusterRun) add(r role, name string, start func() *exec.Cmd) {
	m := &member{role: r, name: name, start: start}
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	f.wg.Go(func() {
		for f.live(m) {
		}
	})
}

// live runs one process of a member to its end and reports whether to start another.
func (f *clusterRun) live(m *member) bool {
	f.mu.Lock()
	if f.closing || m.leaving || f.ctx.Err() != nil {
		f.mu.Unlock()
		return false
	}
	cmd := m.start()
	m.out, m.errs, m.ended = &bytes.Buffer{}, &bytes.Buffer{}, map[Kind]bool{}
	cmd.Stdout, cmd.Stderr = m.out, m.errs
	err := cmd.Start()
	if err == nil {
		m.cmd = cmd
		f.t.report.Starts++
		f.t.pids = append(f.t.pids, cmd.Process.Pid)
	}
	many := f.t.report.Starts > 4*f.t.cfg.Faults+40
	f.mu.Unlock()
	if err != nil {
		f.fail(fmt.Errorf("starting %s: %w", m.name, err))
		return false
	}
	_ = cmd.Wait() // how it ended is read below
	f.mu.Lock()
	defer f.mu.Unlock()
	m.cmd = nil
	return f.ended(m, cmd, many)
}

// ended checks the end of a process. The caller holds the lock.
func (f *clusterRun) ended(m *member, cmd *exec.Cmd, many bool) (next bool) {
	if f.closing || f.ctx.Err() != nil {
		return false
	}
	code := exitCode(cmd)
	f.t.report.Ends = append(f.t.report.Ends, m.name+" "+describeEnd(code, m.ended, m.errs.String()))
	switch {
	case m.role == aCoordinator && code == 0:
		f.complete = true
		f.end(f.t.summary(m.out.Bytes()))
		return false
	case code == -int(syscall.SIGKILL) && len(m.ended) == 0 && m.role != aNode:
		f.torn++
	case code > 0 && len(m.ended) == 0 && !f.working.Load():
		f.fail(refusal("the "+m.place(), code, m.errs.String()))
		return false
	case !m.exitIsExplained(code):
		f.t.breach("ended", "%s", f.t.report.Ends[len(f.t.report.Ends)-1])
		f.fail(nil)
		return false
	case many:
		f.t.breach("hung", "the run did not finish with %d processes", f.t.report.Starts)
		f.fail(nil)
		return false
	}
	return !m.leaving
}

// end records how the batch ended; only the first call counts.
func (f *clusterRun) end(err error) {
	select {
	case f.done <- err:
	default:
	}
}

// fail records how a batch ended that cannot continue.
func (f *clusterRun) fail(err error) {
	f.end(err)
	f.cancelBatch()
}

// follow observes the run until the batch has ended.
func (f *clusterRun) follow(conn *engine.Conn) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	known, asked, since := map[string]string{}, 0, time.Now()
	for n := 0; ; n++ {
		if err := f.checkStatus(conn); err != nil && f.batchCtx.Err() == nil {
			return err
		}
		if n%10 == 0 {
			if err := f.t.unchanged(f.ctx, known); err != nil {
				return err
			}
		}
		if n := f.t.server.questions(); n > asked {
			asked, since = n, time.Now()
		} else if time.Since(since) > silence {
			f.t.breach("hung", "no model call arrived for %s", silence)
			return nil
		}
		select {
		case err := <-f.done:
			if err != nil {
				return err
			}
			return f.t.unchanged(f.ctx, known)
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		case <-tick.C:
		}
	}
}

// checkStatus reads the status of each run of the cluster and reports figures that do not add up.
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
		most := slots * f.t.cfg.Fleet
		if ok && (s.Selected != s.Reused+s.Ran+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed || min(s.Waiting, s.Missing) < 0 || s.Running > 2*most) {
			if text := fmt.Sprintf("%+v", s); !f.adrift[text] {
				f.adrift[text] = true
				f.t.breach("status", "%s", text)
			}
		}
		entries, err := conn.Entries(f.batchCtx, r.RunID)
		if err != nil {
			return fmt.Errorf("reading the jobs: %w", err)
		}
		for _, e := range entries {
			f.handed[e.ID] = max(f.handed[e.ID], e.Delivery)
		}
	}
	return nil
}

// dismiss interrupts the processes of a role and waits until they have ended.
func (f *clusterRun) dismiss(r role) {
	f.mu.Lock()
	for _, m := range f.members {
		if m.role == r && m.cmd != nil {
			_ = m.cmd.Process.Signal(syscall.SIGCONT)
			_ = m.cmd.Process.Signal(syscall.SIGINT)
		}
		m.leaving = m.leaving || m.role == r
	}
	f.mu.Unlock()
	for end := time.Now().Add(silence); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		gone := !slices.ContainsFunc(f.members, func(m *member) bool { return m.role == r && m.cmd != nil })
		f.mu.Unlock()
		if gone {
			return
		}
	}
	f.t.breach("hung", "a %s did not leave in %s", r, silence)
}

// clear kills the remaining processes.
func (f *clusterRun) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closing = true
	for _, m := range f.members {
		if m.cmd != nil {
			_ = m.cmd.Process.Kill()
		}
	}
}

// again repeats the command of the finished run, which finds nothing to do and removes
// what the last killed process left on this machine.
func (f *clusterRun) again(run []string) error {
	var out struct {
		Ledger struct{ Selected, Reused, Ran int }
	}
	if err := f.t.runJSON(f.ctx, &out, run...); err != nil {
		return err
	}
	if l := out.Ledger; l.Reused != l.Selected || l.Ran != 0 {
		f.t.breach("lost", "the same command again: %+v", l)
	}
	return nil
}

// held looks for data that a finished run left on the cluster.
func (f *clusterRun) held(conn *engine.Conn) error {
	held, err := conn.Held(f.ctx)
	if err != nil {
		return fmt.Errorf("listing what the cluster holds: %w", err)
	}
	for id, n := range held {
		f.t.breach("left_stream", "the cluster holds %d bytes of run %s", n, id)
	}
	for _, n := range f.handed {
		f.t.report.HandedAgain += max(0, n-1)
	}
	return nil
}

// asked implements processFaults.
func (f *clusterRun) asked() { f.working.Store(true) }

// strike implements processFaults.
func (f *clusterRun) strike(fault planned, asker string) (found bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[Kind]role{Worker: aWorker, Coordinator: aCoordinator, Node: aNode, Guest: aWorker, Container: aWorker, Stop: aWorker, Drain: aWorker, StoreTorn: aWorker}[fault.Kind]
	if fault.Kind == Drain && f.drainOne%2 == 0 {
		of = aCoordinator
	}
	m := f.choose(of, fault.At, asker)
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
		f.wg.Go(func() { wake(f.ctx, p, fleetStop) })
		return true, p.Signal(syscall.SIGSTOP)
	case Drain:
		f.drainOne++
		m.ended[Drain] = true
		return true, p.Signal(syscall.SIGINT)
	}
	m.ended[fault.Kind] = true
	return true, p.Kill()
}

// choose returns a living member of a role: the one that asked, or one by number. It
// returns a node only if all others are up.
func (f *clusterRun) choose(of role, number int, asker string) *member {
	var alive []*member
	for _, m := range f.members {
		if m.role == of && m.alive() {
			alive = append(alive, m)
		}
	}
	if len(alive) == 0 || of == aNode && len(alive) < nodes {
		return nil
	}
	if of == aWorker {
		if inode := inodeOf(asker); inode != "" {
			if i := slices.IndexFunc(alive, func(m *member) bool { return owns(m.cmd.Process.Pid, inode) }); i >= 0 {
				return alive[i]
			}
		}
	}
	return alive[number%len(alive)]
}
