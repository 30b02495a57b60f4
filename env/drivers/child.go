package drivers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest"
)

// Time limits of drivers.
const (
	CauseTimeout  = 2 * time.Second // to find out what ended a sandbox
	CloseTimeout  = 2 * time.Second // for a sandbox to end by itself
	RemoveTimeout = 2 * time.Minute // to remove a sandbox, also after its context has ended; a busy daemon takes more than 30 s
)

// Child is a child process of the host. A socket is its standard input and output. Its methods are safe for concurrent
// use.
type Child struct {
	Conn net.Conn

	cmd    *exec.Cmd
	stderr Tail
	once   sync.Once
	ended  chan struct{} // closed after the process has ended and been waited for
}

// StartChild sets the standard streams of cmd and calls start with it. To end the child, call Conn.Close and then Stop.
func StartChild(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Child, error) {
	host, inner, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	defer inner.Close()
	c := &Child{Conn: host, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, &c.stderr
	cmd.WaitDelay = CloseTimeout
	if err := start(cmd); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return c, nil
}

// Connect returns a client for a child that is a guest. If the guest does not answer, Connect stops the child and
// returns the child's error output, or the error of the connection if there is no output.
func (c *Child) Connect(ctx context.Context, cfg guest.Config) (*guest.Client, error) {
	client, err := guest.Connect(ctx, c.Conn, cfg)
	if err == nil {
		return client, nil
	}
	c.Stop()
	if text := c.stderr.String(); text != "" && ctx.Err() == nil {
		return nil, errors.New(text)
	}
	return nil, err
}

// KilledFromOutside returns a message if the child was killed, and "" otherwise. It can be the
// guest.Config.OutsideCause of a guest whose programs see neither the child nor the host's processes, and therefore
// cannot have killed the child.
func (c *Child) KilledFromOutside() string {
	select {
	case <-c.wait():
	case <-time.After(CauseTimeout):
		return ""
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && (status.Signaled() || status.ExitStatus() == 128+9) {
		return "its process was killed from outside"
	}
	return ""
}

// wait starts to wait for the process and returns a channel that is closed when it has ended. Call it only near the end
// of a sandbox, because waiting occupies one thread of the host.
func (c *Child) wait() <-chan struct{} {
	c.once.Do(func() {
		go func() {
			defer close(c.ended)
			_ = c.cmd.Wait() // callers use ProcessState
		}()
	})
	return c.ended
}

// CPU returns the CPU time of the process and of all descendants that it or they have waited for. Call it after Stop.
func (c *Child) CPU() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// Stop waits until the process ends, which it does when its stream is closed, and kills it after CloseTimeout. It
// reports whether the process exited with status 0.
func (c *Child) Stop() (clean bool) {
	select {
	case <-c.wait():
	case <-time.After(CloseTimeout):
		// If the child is bwrap, killing it may not end a stopped guest, because bwrap may not signal another user's
		// process.
		_ = killChildren(c.cmd.Process.Pid)
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	return c.cmd.ProcessState.Success()
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	host, inner := os.NewFile(uintptr(fds[0]), "guest"), os.NewFile(uintptr(fds[1]), "host")
	defer host.Close()
	conn, err := net.FileConn(host)
	if err != nil {
		return nil, nil, errors.Join(err, inner.Close())
	}
	return conn, inner, nil
}
