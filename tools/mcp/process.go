package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/tools"
)

// process is the link to a server that it starts. Messages go over the server's standard
// input and output. Error messages quote the end of its standard error. The server leads a
// process group, which process kills as a whole, and dies with this program.
type process struct {
	command string
	args    []string
	env     []string

	bytes   atomic.Int64 // received
	stderr  tail
	mu      sync.Mutex
	cmd     *exec.Cmd     // nil if not started
	in, out *os.File      // this program's ends of the pipes
	reaped  bool          // the process ID may belong to another process by now
	ended   chan struct{} // closed when the process has been reaped
	cutOnce sync.Once
}

// maxMessage limits one message of a server, in bytes.
const maxMessage = 16 << 20

// Connect implements sdk.Transport: it starts the process.
func (p *process) Connect(ctx context.Context) (sdk.Connection, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), inW.Close())
	}
	defer outW.Close()
	cmd := exec.Command(p.command, p.args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, inR, outW, &p.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = closeGrace
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(context.Cause(ctx), cmd.Start()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", p.command, err), inW.Close(), outR.Close())
	}
	p.cmd, p.in, p.out, p.ended = cmd, inW, outR, make(chan struct{})
	go p.wait()
	inner, err := (&sdk.IOTransport{Reader: reader{p}, Writer: writer{p}, MaxLineLength: maxMessage}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &processConn{Connection: inner, p: p}, nil
}

// wait waits for the end of the process and kills its group. It kills before it reaps the
// process, because until then no other group can have the same ID.
func (p *process) wait() {
	defer close(p.ended)
	pid := p.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	p.killGroup()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	_ = p.cmd.Wait() // the end of the stream reports the failure
}

func (p *process) killGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

func (p *process) received() int64 { return p.bytes.Load() }

// cause implements link.
func (p *process) cause() string {
	if text := p.stderr.String(); text != "" {
		return "the server printed: " + text
	}
	return ""
}

// stop closes the server's input, which asks it to end, and kills it after a grace period.
func (p *process) stop() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(closeGrace / 2):
	}
	p.kill()
}

// cut implements link.
func (p *process) cut() {
	p.mu.Lock()
	started := p.cmd != nil
	p.mu.Unlock()
	if started {
		p.kill()
	}
}

// kill kills the process group and waits for its leader. It also closes the pipes, because
// a descendant that escaped may hold the other ends.
func (p *process) kill() {
	p.cutOnce.Do(func() {
		p.killGroup()
		_ = p.in.Close()
		_ = p.out.Close()
	})
	<-p.ended
}

// processConn ends a write when its context ends, and records in the call's delivery whether
// anything was sent.
type processConn struct {
	sdk.Connection
	p *process
}

// errNothingSent means that no byte of a message was written.
var errNothingSent = errors.New("the server does not read its input")

func (c *processConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	stop := context.AfterFunc(ctx, func() { _ = c.p.in.SetWriteDeadline(time.Unix(1, 0)) })
	err := c.Connection.Write(ctx, msg)
	if !stop() {
		_ = c.p.in.SetWriteDeadline(time.Time{})
	}
	if !errors.Is(err, errNothingSent) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		deliveryOf(ctx).maybeSent()
	}
	return err
}

type reader struct{ p *process }

func (r reader) Read(b []byte) (int, error) {
	n, err := r.p.out.Read(b)
	r.p.bytes.Add(int64(n))
	return n, err
}

// Close implements io.Closer. The end of the session ends the server.
func (r reader) Close() error {
	r.p.stop()
	return nil
}

type writer struct{ p *process }

func (w writer) Write(b []byte) (int, error) {
	n, err := w.p.in.Write(b)
	switch {
	case err != nil && n == 0:
		err = fmt.Errorf("%w: %w", errNothingSent, err)
	case err != nil: // the server could not read anything after a partial message
		_ = w.p.in.Close()
		err = fmt.Errorf("the server read %d of %d bytes: %w", n, len(b), err)
	}
	return n, err
}

// Close implements io.Closer.
func (w writer) Close() error { return nil } // reader.Close also ends the input

// environment returns the environment of the process: PATH, HOME, LANG, TMPDIR and the
// configured variables.
func (c Config) environment(getenv func(string) string) ([]string, error) {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for name, from := range c.Env {
		v, err := variable(from, getenv)
		if err != nil {
			return nil, fmt.Errorf("env.%s: %w", name, err)
		}
		env = append(env, name+"="+v)
	}
	return env, nil
}

// variable returns the value of the variable that env:NAME names.
func variable(from string, getenv func(string) string) (string, error) {
	name, ok := strings.CutPrefix(from, "env:")
	if !ok {
		return "", fmt.Errorf("%q is not of the form env:NAME", from)
	}
	v := getenv(name)
	if v == "" {
		return "", fmt.Errorf("%w: %s", ErrNoVariable, name)
	}
	return v, nil
}

// tail keeps the last 2 KiB written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-2048):]...)
	if over := len(t.buf) - 2048; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(tools.Clean(string(t.buf)))
}
