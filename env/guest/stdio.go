package guest

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// hostConn is the stream to the host; closing it ends the guest.
type hostConn struct {
	net.Conn
	ended chan struct{}
	once  sync.Once
}

func (c *hostConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return nil
}

// stdio are standard input and output as a connection.
type stdio struct{ in, out *os.File }

func (c stdio) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c stdio) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c stdio) Close() error                { return nil } // with the process

func (c stdio) LocalAddr() net.Addr                { return &net.UnixAddr{Name: "guest", Net: "stdio"} }
func (c stdio) RemoteAddr() net.Addr               { return &net.UnixAddr{Name: "host", Net: "stdio"} }
func (c stdio) SetDeadline(t time.Time) error      { return os.ErrNoDeadline }
func (c stdio) SetReadDeadline(t time.Time) error  { return os.ErrNoDeadline }
func (c stdio) SetWriteDeadline(t time.Time) error { return os.ErrNoDeadline }

// warmThreads makes the runtime create the threads the guest will need, which it
// then keeps: when agent code later uses up the processes of a container, the
// guest must not need a new one.
func warmThreads() {
	const threads = 12
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range threads {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-release
			runtime.UnlockOSThread()
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}
