package drivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest"
)

// child is a guest that runs as a child process of the host, spoken to over a
// socket that is its standard input and output.
type child struct {
	cmd    *exec.Cmd
	conn   net.Conn
	stderr tail

	once  sync.Once
	ended chan struct{} // closed once the process is gone and waited for; see wait
}

// startChild starts cmd with its output descriptors set, by start.
func startChild(cmd *exec.Cmd, start func(*exec.Cmd) error) (*child, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	defer theirs.Close()
	c := &child{cmd: cmd, conn: ours, ended: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, &c.stderr
	cmd.WaitDelay = closeBound
	if err := start(cmd); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	return c, nil
}

// connect says hello; if that does not work the error tells what the process
// printed, and the process is gone.
func (c *child) connect(ctx context.Context, cfg guest.Config) (*guest.Client, error) {
	client, err := guest.Connect(ctx, c.conn, cfg)
	if err == nil {
		return client, nil
	}
	c.stop()
	if said := c.stderr.String(); said != "" && ctx.Err() == nil {
		return nil, errors.New(said)
	}
	return nil, err
}

// killer tells whether the process was killed, which its own programs cannot do:
// they see neither it nor the host, and the guest is the first process.
func (c *child) killer() string {
	select {
	case <-c.wait():
	case <-time.After(outsideBound):
		return ""
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && (status.Signaled() || status.ExitStatus() == 128+9) {
		return "somebody killed its process"
	}
	return ""
}

// wait begins to wait for the process when its end is near or has come: waiting
// earlier would hold one thread of the host for each sandbox.
func (c *child) wait() <-chan struct{} {
	c.once.Do(func() {
		go func() {
			defer close(c.ended)
			_ = c.cmd.Wait() // how it ends says nothing: the stream's end does
		}()
	})
	return c.ended
}

// stop waits for the process to end with its stream, and insists after a while.
func (c *child) stop() {
	select {
	case <-c.wait():
	case <-time.After(closeBound):
		// A guest that was stopped: behind bwrap, which may not signal another user.
		_ = killChildren(c.cmd.Process.Pid)
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "guest"), os.NewFile(uintptr(fds[1]), "host")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

// tail keeps the last 4 KiB written to it. Safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Under the race detector a test's guest is built with it too, and nobody else
	// reads what it reports.
	if testing.Testing() && bytes.Contains(p, []byte("WARNING: DATA RACE")) {
		panic("in a guest: " + string(p))
	}
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 4096; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "?")
}
