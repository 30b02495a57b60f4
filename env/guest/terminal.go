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
	terminalBuffer = 256 << 10 // output waiting for the host; a program that writes more waits
	keptMarks      = 16
)

// terminals runs programs with an open input, by the host's numbers. Safe for concurrent
// use.
type terminals struct {
	starter   *starter
	killer    *killer
	watchdog  *watchdog
	workspace workspace

	mu   sync.Mutex
	open map[uint64]*terminal
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
		change: make(chan struct{}), closed: make(chan struct{}), gone: make(chan struct{}),
	}
	t.child, err = ts.starter.spawn(program{
		args: texts(r.Args), dir: ts.workspace.path(r.Dir), env: r.Env, files: l.child, tty: r.Pty,
	}, t.scope)
	l.started()
	if err != nil {
		ts.killer.scopes.forget(t.scope)
		l.close()
		return err
	}
	t.group = func() int { return l.foreground(t.child.pid) }
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

// write gives the program input; see terminal.write.
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
	// Under the reaper's lock a program that has not ended keeps its number.
	ts.killer.reaper.mu.Lock()
	defer ts.killer.reaper.mu.Unlock()
	if g := t.group(); g > 1 && !t.over() {
		if err := unix.Kill(-g, unix.SIGINT); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

// mark remembers which processes of the terminal live now.
func (ts *terminals) mark(id uint64) (*guestpb.MarkResponse, error) {
	t, err := ts.get(id)
	if err != nil {
		return nil, err
	}
	alive := map[identity]bool{}
	for _, p := range processes(ts.killer.scopes.of(t.scope)) {
		alive[p.identity()] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastMark++
	t.marks[t.lastMark] = alive
	delete(t.marks, t.lastMark-keptMarks)
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
		return status.Errorf(codes.InvalidArgument, "mark %d is not among the last %d", r.Mark, keptMarks)
	}
	ts.killer.kill(ts.killer.scopes.of(t.scope), func(p process) bool {
		return p.pid == t.child.pid || before[p.identity()]
	})
	ts.killer.reaper.mu.Lock()
	defer ts.killer.reaper.mu.Unlock()
	if !t.over() { // a killed process may have stopped it
		_ = unix.Kill(t.child.pid, unix.SIGCONT)
	}
	return nil
}

// end kills the program and everything it started.
func (ts *terminals) end(id uint64) error {
	t, err := ts.get(id)
	if err != nil {
		return err
	}
	ts.mu.Lock()
	delete(ts.open, id)
	ts.mu.Unlock()
	t.once.Do(func() { close(t.closed) })
	ts.killer.end(t.scope)
	select {
	case <-t.gone:
	case <-time.After(sweepBound):
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

	mu     sync.Mutex
	buf    []byte
	ended  bool          // no more output will be kept
	change chan struct{} // closed and replaced whenever buf, ended or limit change
	closed chan struct{}
	once   sync.Once
	gone   chan struct{} // closed when pump has returned

	marks    map[uint64]map[identity]bool
	lastMark uint64
}

// pump moves output into the buffer until its end. Once the program has ended, background
// processes of it may hold the line for settle only.
func (t *terminal) pump(l *line) {
	defer close(t.gone)
	var reader sync.WaitGroup
	eof := make(chan struct{})
	reader.Go(func() {
		defer close(eof)
		chunk := make([]byte, 64<<10)
		for {
			n, err := l.out.Read(chunk)
			t.put(chunk[:n])
			if err != nil { // EOF, or EIO from a terminal that no process holds
				return
			}
		}
	})
	<-t.child.done
	select {
	case <-eof:
	case <-time.After(settle):
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

// put waits for room in the buffer, so that memory is bounded and the program waits too.
func (t *terminal) put(p []byte) {
	if len(p) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.buf) > terminalBuffer && !t.ended {
		change := t.change
		t.mu.Unlock()
		select {
		case <-change:
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

// notify is called with mu held.
func (t *terminal) notify() {
	close(t.change)
	t.change = make(chan struct{})
}

// read returns when there is output, at the end of the output, or after wait.
func (t *terminal) read(ctx context.Context, wait time.Duration) *guestpb.ReadResponse {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := false; ; {
		t.mu.Lock()
		if len(t.buf) > 0 || t.ended || over {
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
		change := t.change
		t.mu.Unlock()
		select {
		case <-change:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

// write waits while the program does not read its input. It drops input for a program
// that has ended: the next read reports the end.
func (t *terminal) write(ctx context.Context, data []byte) (err error) {
	if end, ok := ctx.Deadline(); ok {
		err = t.in.SetWriteDeadline(end)
	}
	if err == nil {
		_, err = t.in.Write(data)
	}
	if err != nil && !t.over() && !errors.Is(err, unix.EPIPE) {
		return err
	}
	return nil
}

// over tells whether the program has ended.
func (t *terminal) over() bool {
	select {
	case <-t.child.done:
		return true
	default:
		return false
	}
}
