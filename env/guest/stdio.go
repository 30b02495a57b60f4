package guest

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// stdioConn is the stream to the host as the connection ttrpc expects.
type stdioConn struct {
	*stdio
	once sync.Once
}

func (c *stdioConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *stdioConn) Write(p []byte) (int, error) { return c.out.Write(p) }

func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return nil
}

func (c *stdioConn) LocalAddr() net.Addr                { return &net.UnixAddr{Name: "guest", Net: "stdio"} }
func (c *stdioConn) RemoteAddr() net.Addr               { return &net.UnixAddr{Name: "host", Net: "stdio"} }
func (c *stdioConn) SetDeadline(t time.Time) error      { return os.ErrNoDeadline }
func (c *stdioConn) SetReadDeadline(t time.Time) error  { return os.ErrNoDeadline }
func (c *stdioConn) SetWriteDeadline(t time.Time) error { return os.ErrNoDeadline }

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
