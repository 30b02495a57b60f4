package guest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// hostConn is the stream to the host. Closing it ends the guest.
type hostConn struct {
	net.Conn
	ended chan struct{}
	once  sync.Once
}

func (c *hostConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return nil
}

// stdio is a net.Conn over standard input and output. It has no deadlines.
type stdio struct{ in, out *os.File }

func (c stdio) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c stdio) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c stdio) Close() error                { return nil } // the descriptors close when the process exits

func (c stdio) LocalAddr() net.Addr                { return &net.UnixAddr{Name: "guest", Net: "stdio"} }
func (c stdio) RemoteAddr() net.Addr               { return &net.UnixAddr{Name: "host", Net: "stdio"} }
func (c stdio) SetDeadline(t time.Time) error      { return os.ErrNoDeadline }
func (c stdio) SetReadDeadline(t time.Time) error  { return os.ErrNoDeadline }
func (c stdio) SetWriteDeadline(t time.Time) error { return os.ErrNoDeadline }

// takeStdio moves the stream away from descriptors 0 and 1, which programs inherit, and
// opens /dev/null in their place.
func takeStdio() (*hostConn, error) {
	var moved [2]*os.File
	for fd := range moved {
		high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 64)
		if err != nil {
			return nil, err
		}
		if err := unix.SetNonblock(high, true); err != nil {
			return nil, err
		}
		moved[fd] = os.NewFile(uintptr(high), "host")
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for fd := range moved {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return nil, err
		}
	}
	return &hostConn{Conn: stdio{in: moved[0], out: moved[1]}, ended: make(chan struct{})}, unix.Close(null)
}

// singleConnListener is a listener with one connection. Its second Accept waits until that
// connection is closed, and returns io.EOF.
type singleConnListener struct {
	conn  *hostConn
	taken bool
}

func (l *singleConnListener) Accept() (net.Conn, error) {
	if l.taken {
		<-l.conn.ended
		return nil, io.EOF
	}
	l.taken = true
	return l.conn, nil
}

func (l *singleConnListener) Close() error   { return nil }
func (l *singleConnListener) Addr() net.Addr { return &net.UnixAddr{Name: "host", Net: "stdio"} }
