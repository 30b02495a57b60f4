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

// How long a driver waits.
const (
	CauseTimeout  = 2 * time.Second  // to find out what ended a sandbox
	CloseTimeout  = 2 * time.Second  // for a sandbox to end by itself
	RemoveTimeout = 30 * time.Second // to remove a sandbox, also after its context has ended
)

// Child is a child process of the host, connected by a socket that is its standard input and output. Its methods
// are safe for concurrent use.
type Child struct {
	Conn net.Conn

	cmd    *exec.Cmd
	stderr Tail
	once   sync.Once
	ended  chan struct{} // closed after the process has ended and been waited for
}

// StartChild connects the standard streams of cmd and calls start with it. End the child with Conn.Close and Stop.
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

// Connect returns the client of a child that is a guest. If the guest does not answer, Connect stops the child, and
// the error is the child's error output, or the error of the connection if there is no output.
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

// KilledFromOutside returns a reason if the child was killed, and "" otherwise. It suits guest.Config.OutsideCause of a
// guest whose programs can see neither the child nor the host: they cannot have killed it.
func (c *Child) KilledFromOutside() string {
	select {
	case <-c.wait():
	case <-time.After(CauseTimeout):
		return ""
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && (status.Signaled() || status.ExitStatus() == 128+9) {
		return "somebody killed its process"
	}
	return ""
}

// wait starts to wait for the process. Drivers call it near the end of a sandbox only, because a waiting sandbox
// holds one thread of the host.
func (c *Child) wait() <-chan struct{} {
	c.once.Do(func() {
		go func() {
			defer close(c.ended)
			_ = c.cmd.Wait() // the end of the stream tells how the guest ended
		}()
	})
	return c.ended
}

// Stop waits until the process ends, which closing its stream causes, and kills it after CloseTimeout. It reports
// whether the process exited with status 0.
func (c *Child) Stop() (clean bool) {
	select {
	case <-c.wait():
	case <-time.After(CloseTimeout):
		// A stopped guest runs behind bwrap, which may not signal another user's process.
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
