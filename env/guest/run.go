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

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// runs executes programs until they end. Safe for concurrent use.
type runs struct {
	starter   *starter
	killer    *killer
	watchdog  *watchdog
	workspace workspace
	transfers *transfers

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // by the id that the host gave the run
}

// run runs a program until it ends or its time limit is reached, and returns the result.
func (s *runs) run(ctx context.Context, r *guestpb.RunRequest) (*guestpb.RunResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cancels[r.Id] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, r.Id)
	}()
	stdin := r.Stdin
	if r.StdinTransfer != 0 {
		t, err := s.transfers.take(r.StdinTransfer)
		if err != nil {
			return nil, err
		}
		stdin = t.input
	}
	var sealed []byte
	if r.SealedTransfer != 0 {
		t, err := s.transfers.take(r.SealedTransfer)
		if err != nil {
			return nil, err
		}
		sealed = t.input
	}
	x, err := s.execute(ctx, r, stdin, sealed)
	if err != nil {
		return nil, err
	}
	return s.report(x)
}

// cancel ends a run early. It does nothing if the run does not exist.
func (s *runs) cancel(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.cancels[id]; cancel != nil {
		cancel()
	}
}

// execution is the result of one run.
type execution struct {
	out      *capture
	code     int
	timedOut bool
	limit    string
	wall     time.Duration
	keys     []bool // see RunResponse.Keys
}

func (s *runs) execute(ctx context.Context, r *guestpb.RunRequest, stdin, sealed []byte) (*execution, error) {
	p := program{args: toStrings(r.Args), dir: s.workspace.path(r.Dir), env: r.Env}
	out := &capture{max: min(max(r.MaxOutput, 1), maxOutput)}
	pr, pw, err := pipe(writeOnly)
	if err != nil {
		return nil, err
	}
	input, in, err := newInputWriter(stdin)
	if err != nil {
		return nil, errors.Join(err, pr.Close(), pw.Close())
	}
	p.files = [3]*os.File{in, pw, pw}
	sc := s.killer.scopes.create(false)
	defer s.killer.scopes.forget(sc)
	keys, err := giveKeys(r, s.starter.tagKey, s.killer, sc)
	if err == nil && len(sealed) > 0 {
		p.sealed, err = sealedFile(s.starter.tagKey, sealed)
	}
	var c *child
	if err == nil {
		c, err = s.starter.spawn(p, sc)
	}
	_, _ = pw.Close(), in.Close()
	if p.sealed != nil {
		_ = p.sealed.Close()
	}
	if err != nil {
		keys.stop()
		_ = pr.Close()
		input.stop()
		return startFailure(out, err)
	}
	s.watchdog.wake()
	input.start(stdin)
	defer input.stop()
	o := newOutputReader(pr, func(p []byte) { _, _ = out.Write(p) })
	go func() {
		defer pr.Close()
		o.run()
	}()

	x := &execution{out: out}
	timer := time.NewTimer(cmp.Or(time.Duration(r.TimeoutNs), env.DefaultCommandTimeout))
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		x.timedOut = true
	case <-ctx.Done():
		x.timedOut = true // kills the scope; the host ignores the result of a run that it has canceled
	}
	allDead := true
	if x.limit = sc.takeLimit(); x.timedOut || x.limit != "" {
		allDead = s.killer.killScope(sc) // even if the watchdog is already killing it
	}
	select {
	case <-c.done:
		x.code, x.wall = c.code, c.end.Sub(c.start)
	case <-time.After(sweepTimeout): // stuck in the kernel until the sandbox ends
		x.code, x.wall = 128+int(syscall.SIGKILL), time.Since(c.start)
	}
	o.end()
	<-o.done
	if !allDead {
		fmt.Fprintln(out, "\nSome processes that this command started could not be killed and still run.")
	}
	x.keys = keys.stop()
	return x, nil
}

// startFailure returns the result of a command whose program could not be started, with the
// exit code that a shell would report. It returns err itself if the command is not the cause.
func startFailure(out *capture, err error) (*execution, error) {
	var start *startError
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

// report returns the result with the first piece of the output, and keeps the rest for Pull.
func (s *runs) report(x *execution) (*guestpb.RunResponse, error) {
	raw, head := x.out.bytes()
	resp := &guestpb.RunResponse{
		Output: raw, Length: int64(len(raw)), Head: int64(head), Total: x.out.total,
		ExitCode: int64(x.code), TimedOut: x.timedOut, Limit: x.limit, WallNs: int64(x.wall), Keys: x.keys,
	}
	if len(raw) > pieceBytes {
		id, err := s.transfers.keep(raw[pieceBytes:])
		if err != nil {
			return nil, err
		}
		resp.Output, resp.RestTransfer = raw[:pieceBytes], id
	}
	return resp, nil
}
