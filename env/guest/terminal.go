package guest

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

const (
	terminalBuffer = 256 << 10 // output waiting for the host; a program that writes more waits
	keptMarks      = 16
)

// terminal is a long-lived program with an open input.
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
	gone   chan struct{} // the reader and the waiter are done with ended

	marks    map[uint64]map[identity]bool
	lastMark uint64
}

// Open starts a terminal under an id the host chose.
func (s *server) Open(_ context.Context, r *guestpb.OpenRequest) (*guestpb.Empty, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	if len(r.Args) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no program given")
	}
	s.mu.Lock()
	_, taken := s.terminals[r.Id]
	full := len(s.terminals) >= maxTerminals
	s.mu.Unlock()
	if taken || full {
		return nil, status.Errorf(codes.InvalidArgument, "terminal %d cannot be opened: id in use or more than %d", r.Id, maxTerminals)
	}
	open := openPipes
	if r.Pty {
		open = openPTY
	}
	l, err := open()
	if err != nil {
		return nil, fault(err)
	}
	t := &terminal{
		scope: s.scopes.create(true), in: l.in, marks: map[uint64]map[identity]bool{},
		change: make(chan struct{}), closed: make(chan struct{}), gone: make(chan struct{}),
	}
	t.child, err = s.spawn(program{
		args: texts(r.Args), dir: s.path(r.Dir), env: s.environ(r.Env), files: l.child, tty: r.Pty,
	}, t.scope)
	l.started()
	if err != nil {
		s.scopes.forget(t.scope)
		l.close()
		return nil, fault(err)
	}
	t.group = func() int { return l.foreground(t.child.pid) }
	go t.pump(l)
	s.mu.Lock()
	s.terminals[r.Id] = t
	s.mu.Unlock()
	s.wake()
	return &guestpb.Empty{}, nil
}

// pump moves output into the buffer until its end; once the program has ended
// what it left behind may hold the line for settle only.
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
			if err != nil { // EOF, or EIO from a terminal nobody holds
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

// put waits for room, so that memory is bounded and the program feels it.
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

// Read answers as soon as there is output, the end, or wait is over.
func (s *server) Read(ctx context.Context, r *guestpb.ReadRequest) (*guestpb.ReadResponse, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	wait := time.NewTimer(time.Duration(r.WaitNs))
	defer wait.Stop()
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
			return resp, nil
		}
		change := t.change
		t.mu.Unlock()
		select {
		case <-change:
		case <-wait.C:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

// Write gives the program input; it waits while the program does not read. Input
// for a program that has ended is dropped: the next Read tells of the end.
func (s *server) Write(ctx context.Context, r *guestpb.WriteRequest) (*guestpb.Empty, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	s.wake()
	if end, ok := ctx.Deadline(); ok {
		err = t.in.SetWriteDeadline(end)
	}
	if err == nil {
		_, err = t.in.Write(r.Data)
	}
	if err != nil && !t.over() && !errors.Is(err, unix.EPIPE) {
		return nil, fault(err)
	}
	return &guestpb.Empty{}, nil
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

// Interrupt sends SIGINT to the foreground process group.
func (s *server) Interrupt(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.Empty, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	// Under the reaper's lock a program that has not ended keeps its number.
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	if g := t.group(); g > 1 && !t.over() {
		if err := unix.Kill(-g, unix.SIGINT); err != nil && err != unix.ESRCH {
			return nil, fault(err)
		}
	}
	return &guestpb.Empty{}, nil
}

// Mark remembers which processes of the terminal live now.
func (s *server) Mark(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.MarkResponse, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	alive := map[identity]bool{}
	for _, p := range processes(s.scopes.of(t.scope)) {
		alive[p.identity()] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastMark++
	t.marks[t.lastMark] = alive
	delete(t.marks, t.lastMark-keptMarks)
	return &guestpb.MarkResponse{Mark: t.lastMark}, nil
}

// KillChildren kills what the terminal's program started since the mark.
func (s *server) KillChildren(_ context.Context, r *guestpb.KillRequest) (*guestpb.Empty, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	before, known := t.marks[r.Mark]
	t.mu.Unlock()
	if !known && r.Mark != 0 {
		return nil, status.Errorf(codes.InvalidArgument, "mark %d is not among the last %d", r.Mark, keptMarks)
	}
	s.kill(s.scopes.of(t.scope), func(p process) bool {
		return p.pid == t.child.pid || before[p.identity()]
	})
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	if !t.over() { // one of the dead may have stopped it
		_ = unix.Kill(t.child.pid, unix.SIGCONT)
	}
	return &guestpb.Empty{}, nil
}

// Close kills the program with everything it started.
func (s *server) Close(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.Empty, error) {
	t, err := s.terminal(r.Id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.terminals, r.Id)
	s.mu.Unlock()
	t.once.Do(func() { close(t.closed) })
	s.end(t.scope)
	select {
	case <-t.gone:
	case <-time.After(sweepBound):
		return nil, fault(errors.New("the program is stuck in the kernel"))
	}
	s.scopes.forget(t.scope)
	return &guestpb.Empty{}, nil
}

func (s *server) terminal(id uint64) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[id]; t != nil {
		return t, nil
	}
	return nil, status.Errorf(codes.NotFound, "no terminal %d", id)
}

// line is what connects a program to its terminal.
type line struct {
	in, out *os.File // the guest's side
	child   [3]*os.File
	pty     bool
}

// started closes the program's side in the guest.
func (l *line) started() {
	for i, f := range l.child {
		if i == 0 || f != l.child[i-1] {
			_ = f.Close()
		}
	}
}

func (l *line) close() {
	_ = l.in.Close()
	if l.out != l.in {
		_ = l.out.Close()
	}
}

// foreground is the process group that reads the terminal, leader's without one.
func (l *line) foreground(leader int) int {
	if !l.pty {
		return leader
	}
	group := 0
	raw, err := l.in.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if g, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	return group
}

func openPipes() (*line, error) {
	inR, inW, err := pipe(onlyHeld)
	if err != nil {
		return nil, err
	}
	outR, outW, err := pipe(onlyWrite)
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	return &line{in: inW, out: outR, child: [3]*os.File{inR, outW, outW}}, nil
}

// openPTY makes a pseudo terminal that passes bytes through unchanged: no echo,
// no line editing, no line length, no control characters, no CR before LF.
func openPTY() (*line, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*line, error) { return nil, errors.Join(err, master.Close(), slave.Close()) }
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return fail(err)
	}
	mode.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		return fail(err)
	}
	// A descriptor that the runtime can poll, so that closing it ends a read.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(master.Close(), unix.SetNonblock(fd, true)); err != nil {
		return nil, errors.Join(err, slave.Close(), unix.Close(fd))
	}
	m := os.NewFile(uintptr(fd), "terminal")
	return &line{in: m, out: m, child: [3]*os.File{slave, slave, slave}, pty: true}, nil
}
