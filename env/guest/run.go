package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// settle is how long output is awaited after a program's end while something it
// left behind still holds the pipe.
const settle = 50 * time.Millisecond

// Run starts a program, waits for its end or its bound, and reports.
func (s *server) Run(ctx context.Context, r *guestpb.RunRequest) (*guestpb.RunResponse, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	if len(r.Args) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no program given")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.runs[r.Id] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runs, r.Id)
	}()
	stdin := r.Stdin
	if r.StdinTransfer != 0 {
		t, err := s.take(r.StdinTransfer)
		if err != nil {
			return nil, err
		}
		stdin = t.input
	}
	var sealed []byte
	if r.SealedTransfer != 0 {
		t, err := s.take(r.SealedTransfer)
		if err != nil {
			return nil, err
		}
		sealed = t.input
	}
	x, err := s.execute(ctx, r, stdin, sealed)
	if err != nil {
		return nil, fault(err)
	}
	return s.report(x)
}

// Cancel ends a Run early.
func (s *server) Cancel(_ context.Context, r *guestpb.CancelRequest) (*guestpb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.runs[r.Id]; cancel != nil {
		cancel()
	}
	return &guestpb.Empty{}, nil
}

// execution is what became of one Run.
type execution struct {
	out      *capture
	code     int
	timedOut bool
	limit    string
	wall     time.Duration
	keys     []bool
}

func (s *server) execute(ctx context.Context, r *guestpb.RunRequest, stdin, sealed []byte) (*execution, error) {
	p := program{args: texts(r.Args), dir: s.path(r.Dir), env: s.environ(r.Env)}
	out := &capture{max: min(max(r.MaxOutput, 1), maxOutput)}
	pr, pw, err := pipe(onlyWrite)
	if err != nil {
		return nil, err
	}
	feed, in, err := input(stdin)
	if err != nil {
		return nil, errors.Join(err, pr.Close(), pw.Close())
	}
	p.files = [3]*os.File{in, pw, pw}
	sc := s.scopes.create(false)
	defer s.scopes.forget(sc)
	keys, err := s.giveKeys(r, sc)
	if err == nil && len(sealed) > 0 {
		p.sealed, err = sealedFile(s.key, sealed)
	}
	var c *child
	if err == nil {
		c, err = s.spawn(p, sc)
	}
	_, _ = pw.Close(), in.Close()
	if p.sealed != nil {
		_ = p.sealed.Close()
	}
	if err != nil {
		keys.stop()
		_ = pr.Close()
		feed.stop()
		return notStarted(out, err)
	}
	s.wake()
	feed.start(stdin)
	defer feed.stop()
	o := collect(pr, out)

	x := &execution{out: out}
	bound := time.NewTimer(cmp.Or(time.Duration(r.TimeoutNs), env.DefaultCommandTimeout))
	defer bound.Stop()
	select {
	case <-c.done:
	case <-bound.C:
		x.timedOut = true
	case <-ctx.Done():
		x.timedOut = true
	}
	dead := true
	if x.limit = sc.takeLimit(); x.timedOut || x.limit != "" {
		dead = s.end(sc) // the watchdog may be at it still
	}
	select {
	case <-c.done:
		x.code, x.wall = c.code, c.end.Sub(c.start)
	case <-time.After(sweepBound): // stuck in the kernel; only the sandbox's end helps
		x.code, x.wall = 128+int(syscall.SIGKILL), time.Since(c.start)
	}
	o.finish()
	if !dead {
		fmt.Fprintln(out, "\nSome processes that this command started could not be killed and still run.")
	}
	x.keys = keys.stop()
	return x, nil
}

// notStarted is a command that names no runnable program: a result like any
// other, with a shell's exit codes.
func notStarted(out *capture, err error) (*execution, error) {
	var start *errStart
	if !errors.As(err, &start) {
		return nil, err
	}
	fmt.Fprintf(out, "%v\n", start)
	x := &execution{out: out, code: start.code}
	if errors.Is(err, syscall.EAGAIN) {
		x.limit = "processes"
	}
	return x, nil
}

// report answers with the first piece of the output and keeps the rest.
func (s *server) report(x *execution) (*guestpb.RunResponse, error) {
	raw, head := x.out.bytes()
	resp := &guestpb.RunResponse{
		Output: raw, Length: int64(len(raw)), Head: int64(head), Total: x.out.total,
		ExitCode: int64(x.code), TimedOut: x.timedOut, Limit: x.limit, WallNs: int64(x.wall), Keys: x.keys,
	}
	if len(raw) > pieceBytes {
		id, err := s.keep(raw[pieceBytes:])
		if err != nil {
			return nil, err
		}
		resp.Output, resp.RestTransfer = raw[:pieceBytes], id
	}
	return resp, nil
}

// outlet reads a program's output to its end, which may come long after the
// program's: what it left behind must be able to go on writing.
type outlet struct {
	mu     sync.Mutex
	out    *capture // nil once finished
	closed chan struct{}
}

func collect(f *os.File, out *capture) *outlet {
	o := &outlet{out: out, closed: make(chan struct{})}
	go func() {
		defer close(o.closed)
		defer f.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			o.mu.Lock()
			if o.out != nil {
				_, _ = o.out.Write(buf[:n])
			}
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

// finish waits for the end of the output, at most settle; later output is dropped.
func (o *outlet) finish() {
	select {
	case <-o.closed:
	case <-time.After(settle):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out = nil
}

// feeder writes a program's input.
type feeder struct {
	w    *os.File // nil: the program reads /dev/null
	done chan struct{}
}

func input(stdin []byte) (*feeder, *os.File, error) {
	if len(stdin) == 0 {
		null, err := os.Open(os.DevNull)
		return &feeder{}, null, err
	}
	r, w, err := os.Pipe()
	return &feeder{w: w}, r, err
}

func (f *feeder) start(stdin []byte) {
	if f.w == nil {
		return
	}
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		_, _ = f.w.Write(stdin) // a program need not read its input
		_ = f.w.Close()
	}()
}

func (f *feeder) stop() {
	if f.w == nil {
		return
	}
	_ = f.w.Close()
	if f.done != nil {
		<-f.done
	}
}
