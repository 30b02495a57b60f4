package guest

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

const (
	maxTerminals   = 64
	terminalBuffer = 256 << 10 // bytes of output that wait for the host; a program that writes more is blocked
	maxMarks       = 16
)

// terminals runs programs with an open input. Safe for concurrent use.
type terminals struct {
	starter   *starter
	killer    *killer
	watchdog  *watchdog
	workspace workspace

	mu   sync.Mutex
	open map[uint64]*terminal // by the id that the host gave the terminal
}

// start starts a terminal's program.
func (ts *terminals) start(r *guestpb.OpenRequest) error {
	ts.mu.Lock()
	_, taken := ts.open[r.Id]
	full := len(ts.open) >= maxTerminals
	ts.mu.Unlock()
	if taken || full {
		return status.Errorf(codes.InvalidArgument, "terminal %d cannot be opened: id in use or more than %d", r.Id, maxTerminals)
	}
	connect := openPipes
	if r.Pty {
		connect = openPTY
	}
	l, err := connect()
	if err != nil {
		return err
	}
	t := &terminal{
		scope: ts.killer.scopes.create(true), in: l.in, marks: map[uint64]map[identity]bool{},
		changed: make(chan struct{}), closed: make(chan struct{}), pumpDone: make(chan struct{}),
	}
	t.child, err = ts.starter.spawn(program{
		args: toStrings(r.Args), dir: ts.workspace.path(r.Dir), env: r.Env, files: l.programSide, tty: r.Pty,
	}, t.scope)
	l.closeProgramSide()
	if err != nil {
		ts.killer.scopes.forget(t.scope)
		l.close()
		return err
	}
	t.group = func() int { return l.foregroundGroup(t.child.pid) }
	go t.pump(l)
	ts.mu.Lock()
	ts.open[r.Id] = t
	ts.mu.Unlock()
	ts.watchdog.wake()
	return nil
}

func (ts *terminals) get(id uint64) (*terminal, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.open[id]; t != nil {
		return t, nil
	}
	return nil, status.Errorf(codes.NotFound, "no terminal %d", id)
}

// write sends input to the program; see terminal.write.
func (ts *terminals) write(ctx context.Context, r *guestpb.WriteRequest) error {
	t, err := ts.get(r.Id)
	if err != nil {
		return err
	}
	ts.watchdog.wake()
	return t.write(ctx, r.Data)
}

// interrupt sends SIGINT to the foreground process group.
func (ts *terminals) interrupt(id uint64) error {
	t, err := ts.get(id)
	if err != nil {
		return err
	}
	// While the reaper is locked, it cannot reap the program, so the program keeps its number.
	ts.killer.reaper.mu.Lock()
	defer ts.killer.reaper.mu.Unlock()
	if g := t.group(); g > 1 && !t.hasExited() {
		if err := unix.Kill(-g, unix.SIGINT); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

// mark records the processes of the terminal that are alive now.
func (ts *terminals) mark(id uint64) (*guestpb.MarkResponse, error) {
	t, err := ts.get(id)
	if err != nil {
		return nil, err
	}
	alive := map[identity]bool{}
	for _, p := range processes(ts.killer.scopes.tagFilter(t.scope)) {
		alive[p.identity()] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastMark++
	t.marks[t.lastMark] = alive
	delete(t.marks, t.lastMark-maxMarks)
	return &guestpb.MarkResponse{Mark: t.lastMark}, nil
}

// killChildren kills the processes that the terminal's program has started since the mark.
func (ts *terminals) killChildren(r *guestpb.KillRequest) error {
	t, err := ts.get(r.Id)
	if err != nil {
		return err
	}
	t.mu.Lock()
	before, known := t.marks[r.Mark]
	t.mu.Unlock()
	if !known && r.Mark != 0 {
		return status.Errorf(codes.InvalidArgument, "mark %d is not among the last %d", r.Mark, maxMarks)
	}
	ts.killer.kill(ts.killer.scopes.tagFilter(t.scope), func(p process) bool {
		return p.pid == t.child.pid || before[p.identity()]
	})
	ts.killer.reaper.mu.Lock()
	defer ts.killer.reaper.mu.Unlock()
	if !t.hasExited() { // the killed processes may have stopped it
		_ = unix.Kill(t.child.pid, unix.SIGCONT)
	}
	return nil
}

// close kills the program and everything that it started.
func (ts *terminals) close(id uint64) error {
	t, err := ts.get(id)
	if err != nil {
		return err
	}
	ts.mu.Lock()
	delete(ts.open, id)
	ts.mu.Unlock()
	t.once.Do(func() { close(t.closed) })
	ts.killer.killScope(t.scope)
	select {
	case <-t.pumpDone:
	case <-time.After(sweepTimeout):
		return errors.New("the program is stuck in the kernel")
	}
	ts.killer.scopes.forget(t.scope)
	return nil
}

// terminal is one long-lived program with an open input.
type terminal struct {
	scope *scope
	child *child
	in    *os.File
	group func() int // the foreground process group

	mu       sync.Mutex
	buf      []byte
	ended    bool          // no more output is added to buf
	changed  chan struct{} // closed and replaced whenever buf or ended changes
	closed   chan struct{}
	once     sync.Once
	pumpDone chan struct{} // closed when pump has returned

	marks    map[uint64]map[identity]bool
	lastMark uint64
}

// pump copies output into the buffer until it ends. After the program has ended, pump waits at
// most drainTimeout for output of its background processes.
func (t *terminal) pump(l *terminalIO) {
	defer close(t.pumpDone)
	o := newOutputReader(l.out, t.put)
	var reader sync.WaitGroup
	eof := make(chan struct{})
	reader.Go(func() {
		defer close(eof)
		o.run() // ends with EOF, or with EIO from a pseudo terminal that no process has open
	})
	<-t.child.done
	o.end()
	select {
	case <-o.done:
	case <-t.closed:
	}
	t.mu.Lock()
	t.ended = true
	t.notify()
	t.mu.Unlock()
	select {
	case <-eof:
	case <-t.closed:
	}
	l.close()
	reader.Wait()
}

// put appends output to the buffer. It waits for room in the buffer, which limits memory and
// blocks the program.
func (t *terminal) put(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.buf) > terminalBuffer && !t.ended {
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-t.closed:
		}
		t.mu.Lock()
		select {
		case <-t.closed:
			return
		default:
		}
	}
	if !t.ended {
		t.buf = append(t.buf, p...)
		t.notify()
	}
}

// notify wakes the waiters for a change. The caller holds mu.
func (t *terminal) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// read returns when there is output, at the end of the output, or after wait.
func (t *terminal) read(ctx context.Context, wait time.Duration) *guestpb.ReadResponse {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for expired := false; ; {
		t.mu.Lock()
		if len(t.buf) > 0 || t.ended || expired {
			resp := &guestpb.ReadResponse{Data: t.buf, Limit: t.scope.takeLimit()}
			if len(t.buf) > pieceBytes {
				resp.Data, t.buf = t.buf[:pieceBytes:pieceBytes], t.buf[pieceBytes:]
			} else {
				t.buf = nil
			}
			if t.ended && len(resp.Data) == 0 {
				resp.Eof, resp.ExitCode = true, int64(t.child.code)
			}
			t.notify()
			t.mu.Unlock()
			return resp
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			expired = true
		case <-ctx.Done():
			expired = true
		}
	}
}

// write waits while the program does not read its input. It drops input for a program that has
// ended, because the next read reports the end.
func (t *terminal) write(ctx context.Context, data []byte) (err error) {
	if end, ok := ctx.Deadline(); ok {
		err = t.in.SetWriteDeadline(end)
	}
	if err == nil {
		_, err = t.in.Write(data)
	}
	if err != nil && !t.hasExited() && !errors.Is(err, unix.EPIPE) {
		return err
	}
	return nil
}

// hasExited reports whether the program has ended.
func (t *terminal) hasExited() bool {
	select {
	case <-t.child.done:
		return true
	default:
		return false
	}
}
