package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// Time limits of calls whose requests contain none.
const (
	helloTimeout = 30 * time.Second
	fileTimeout  = 30 * time.Second // one piece of a file or an archive
	shortTimeout = 10 * time.Second
	// If a guest has not answered a call in time, the client waits for probeDelay and then
	// sends another call to check whether the guest is alive. If neither is answered within
	// answerGrace, the client treats the guest as dead. If only the other call is answered, the
	// guest has the rest of the time and answerGrace to answer the first one. The grace is long
	// because all containers of a busy machine may share the processor time of one process.
	probeDelay    = 100 * time.Millisecond
	answerGrace   = 20 * time.Second
	writeGrace    = 5 * time.Second
	cancelTimeout = 900 * time.Millisecond

	maxReadFile = 256 << 20 // bytes
)

// init silences the log of the RPC library, because late answers are normal and a hostile
// guest must not be able to write to the host's standard error.
func init() {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	log.L = logrus.NewEntry(quiet)
}

// Config is the configuration of a guest.
type Config struct {
	Workdir string   // absolute, created if absent; "" = the directory that the guest was started in
	Alias   string   // another name for Workdir in the paths of callers; "" = none
	Env     []string // the complete environment of programs
	Limits  env.Limits
	// LimitProcesses is true if RLIMIT_NPROC counts this sandbox's processes alone.
	LimitProcesses bool
	// OutsideCause is called once, after the connection to the guest was lost. It returns what
	// ended the sandbox, or "" if the sandbox's own programs may have done it. It must return
	// within a few seconds. It may be nil.
	OutsideCause func() string
}

// Client is the host's end of the connection to a guest. It has every method of env.Sandbox
// except Key and Close. Safe for concurrent use.
type Client struct {
	rpc     *ttrpc.Client
	svc     guestpb.GuestService
	config  Config
	ids     atomic.Uint64
	running atomic.Int32 // calls in progress that run the agent's programs
	probes  sync.WaitGroup
	dieOnce sync.Once
	death   atomic.Pointer[env.DiedError]
}

// Connect configures the guest at the other end of conn. The client then owns conn. If Connect
// returns an error, it has closed conn.
func Connect(ctx context.Context, conn net.Conn, cfg Config) (*Client, error) {
	rpc := ttrpc.NewClient(boundedConn{conn})
	c := &Client{rpc: rpc, svc: guestpb.NewGuestClient(rpc), config: cfg}
	l := cfg.Limits
	r, err := call(ctx, c, helloTimeout, c.svc.Hello, &guestpb.HelloRequest{
		Workdir: []byte(cfg.Workdir), Env: toByteSlices(cfg.Env),
		MemoryBytes: l.MemoryBytes, Processes: int64(l.Processes), FileBytes: l.DiskBytes,
		OpenFiles: int64(l.OpenFiles), CpuSeconds: int64(l.CPUTime / time.Second),
		LimitProcesses: cfg.LimitProcesses,
	})
	if err == nil && r.Protocol != protocol {
		err = fmt.Errorf("guest speaks protocol %d, not %d: rebuild it with `make build`", r.Protocol, protocol)
	}
	if err == nil && !path.IsAbs(string(r.Workdir)) {
		err = fmt.Errorf("guest named %q as its workspace", r.Workdir)
	}
	if err != nil {
		c.Hangup()
		return nil, err
	}
	c.config.Workdir = string(r.Workdir)
	return c, nil
}

// Workdir returns the absolute path of the workspace as programs see it.
func (c *Client) Workdir() string { return c.config.Workdir }

// Hangup closes the stream, which ends the guest, and waits until no call is in progress.
func (c *Client) Hangup() {
	c.death.CompareAndSwap(nil, &env.DiedError{Reason: "the sandbox is closed"})
	_ = c.rpc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
	defer cancel()
	_ = c.rpc.UserOnCloseWait(ctx)
	c.probes.Wait()
}

// boundedConn bounds each write, so that a guest that does not read cannot delay the sender
// for long after its context has ended.
type boundedConn struct{ net.Conn }

func (c boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeGrace)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// call makes one call, which may take timeout. If the guest does not answer or breaks the
// protocol, the client treats it as dead. A time that env.AnswerBy sets before the end of timeout
// only makes the client check earlier whether the guest is alive: a guest that is alive still has
// the whole timeout. If ctx ends, only the call fails.
func call[Q, R any](ctx context.Context, c *Client, timeout time.Duration,
	method func(context.Context, *Q) (*R, error), req *Q) (*R, error) {
	if d := c.death.Load(); d != nil {
		return nil, d
	}
	limit := timeout // until the check
	if end, ok := env.AnswerEnd(ctx); ok {
		limit = min(limit, max(0, time.Until(end)))
	}
	waiting, cancel := context.WithCancel(ctx)
	checked := make(chan struct{})
	watch := time.AfterFunc(limit+probeDelay, func() {
		defer close(checked)
		c.checkAlive(waiting, timeout-limit+answerGrace) // the rest of timeout, and answerGrace
	})
	r, err := method(waiting, req)
	cancel()
	if !watch.Stop() {
		<-checked
	}
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, c.translate(err)
}

// checkAlive runs when a call should have been answered. It closes the connection if the guest
// is not alive, or if the call, whose context is waiting, is still not answered after grace.
func (c *Client) checkAlive(waiting context.Context, grace time.Duration) {
	probe := make(chan error, 1)
	c.probes.Go(func() {
		_, err := c.svc.Cancel(waiting, &guestpb.CancelRequest{}) // cancels nothing
		probe <- err
	})
	select {
	case <-waiting.Done():
		return
	case err := <-probe:
		if err == nil {
			select {
			case <-waiting.Done():
				return
			case <-time.After(grace):
			}
		}
	case <-time.After(answerGrace - probeDelay):
	}
	if waiting.Err() == nil {
		_ = c.die("no answer from the guest")
	}
}

// translate converts an error of the guest to an error of package env.
func (c *Client) translate(err error) error {
	if d := c.death.Load(); d != nil {
		return d
	}
	st, ok := status.FromError(err)
	if !ok {
		return c.die(printable(err.Error()))
	}
	text := printable(st.Message())
	switch st.Code() {
	case codes.NotFound:
		return fmt.Errorf("%w (%s)", env.ErrNotExist, text)
	case codes.Unavailable:
		return fmt.Errorf("%w (%s)", env.ErrNoProgram, text)
	case codes.OutOfRange:
		return fmt.Errorf("%w (%s)", env.ErrNoSpace, text)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w (%s)", context.DeadlineExceeded, text)
	case codes.InvalidArgument:
		return fmt.Errorf("%w (%s)", env.ErrRefused, text)
	case codes.FailedPrecondition, codes.Canceled:
		return errors.New(text)
	}
	return c.die(text)
}

// die closes the connection. Only the first failure is recorded as the cause.
func (c *Client) die(reason string) error {
	c.dieOnce.Do(func() {
		d := &env.DiedError{CausedByCommand: c.running.Load() > 0, Reason: reason}
		_ = c.rpc.Close()
		if c.config.OutsideCause != nil && c.death.Load() == nil {
			if cause := c.config.OutsideCause(); cause != "" {
				d = &env.DiedError{Reason: cause}
			}
		}
		c.death.CompareAndSwap(nil, d)
	})
	return c.death.Load()
}

// trackRunning marks a call that runs the agent's programs. If the guest dies before done is
// called, the agent's programs count as the cause.
func (c *Client) trackRunning() (done func()) {
	c.running.Add(1)
	return func() { c.running.Add(-1) }
}

// Run implements env.Sandbox.
func (c *Client) Run(ctx context.Context, cmd env.Command) (env.Result, error) {
	defer c.trackRunning()()
	if len(cmd.Args) == 0 {
		return env.Result{}, errors.New("running a command: no program given")
	}
	timeout := cmp.Or(cmd.Timeout, env.DefaultCommandTimeout)
	req := &guestpb.RunRequest{
		Id: c.ids.Add(1), Args: toByteSlices(cmd.Args), Dir: c.guestPath(cmd.Dir), Env: toByteSlices(cmd.Env), Stdin: cmd.Stdin,
		TimeoutNs: int64(timeout), MaxOutput: min(cmp.Or(cmd.MaxOutput, env.DefaultMaxOutput), maxOutput),
	}
	if len(cmd.Stdin) > pieceBytes {
		req.StdinTransfer, req.Stdin = c.ids.Add(1), nil
		if err := c.push(ctx, &guestpb.PushRequest{Id: req.StdinTransfer, Kind: guestpb.Kind_INPUT}, cmd.Stdin); err != nil {
			return env.Result{}, fmt.Errorf("sending input: %w", err)
		}
	}
	if len(cmd.Sealed) > 0 {
		req.SealedTransfer = c.ids.Add(1)
		if err := c.push(ctx, &guestpb.PushRequest{Id: req.SealedTransfer, Kind: guestpb.Kind_INPUT}, cmd.Sealed); err != nil {
			return env.Result{}, fmt.Errorf("sending the sealed file: %w", err)
		}
	}
	if cmd.Keys != nil {
		req.KeysName, req.KeysSecret = cmd.Keys.Name, cmd.Keys.Secret
	}
	r, err := call(ctx, c, timeout, c.svc.Run, req)
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		_, _ = call(late, c, cancelTimeout, c.svc.Cancel, &guestpb.CancelRequest{Id: req.Id})
		return env.Result{}, ctx.Err()
	}
	if err != nil {
		return env.Result{}, fmt.Errorf("running %s: %w", cmd.Args[0], err)
	}
	out := r.Output
	if r.RestTransfer != 0 {
		rest, _, err := c.pull(ctx, &guestpb.PullRequest{Id: r.RestTransfer, Kind: guestpb.Kind_OUTPUT}, req.MaxOutput)
		if err != nil {
			return env.Result{}, fmt.Errorf("fetching output: %w", err)
		}
		out = append(out, rest...)
	}
	if int64(len(out)) > req.MaxOutput || r.Total < int64(len(out)) || r.Head < 0 || r.Head > int64(len(out)) {
		return env.Result{}, c.die("impossible lengths of output")
	}
	return env.Result{
		Output: out, Head: int(r.Head), Total: r.Total, ExitCode: int(r.ExitCode), TimedOut: r.TimedOut,
		Limit: oneOf(r.Limit, "memory", "processes"), Wall: time.Duration(r.WallNs), Keys: r.Keys,
	}, nil
}

// guestPath converts a caller's path for the guest, by replacing the alias with the workspace.
func (c *Client) guestPath(p string) []byte {
	if a := c.config.Alias; a != "" {
		if rest, ok := strings.CutPrefix(path.Clean(p), a); ok && (rest == "" || rest[0] == '/') {
			return []byte(c.config.Workdir + rest)
		}
	}
	return []byte(p)
}

// callerPath converts a path from the guest for the caller, by replacing the workspace with the
// alias.
func (c *Client) callerPath(p string) string {
	if a := c.config.Alias; a != "" {
		if rest, ok := strings.CutPrefix(p, c.config.Workdir); ok && (rest == "" || rest[0] == '/') {
			return a + rest
		}
	}
	return p
}

// printable makes text from the guest safe for a message: short and without control codes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), 500)])
}

// oneOf returns s if it is one of the known words, and "" otherwise.
func oneOf(s string, known ...string) string {
	for _, k := range known {
		if s == k {
			return s
		}
	}
	return ""
}
