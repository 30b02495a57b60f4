package guest

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// capture keeps the beginning and the end of what is written to it, max bytes in total.
type capture struct {
	max   int64
	head  []byte
	tail  []byte // a ring buffer once it is full
	at    int    // next position in the full ring
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := int(c.max/2) - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	size := int(c.max - c.max/2)
	if len(p) > size {
		p = p[len(p)-size:]
	}
	for len(p) > 0 {
		if len(c.tail) < size {
			k := min(size-len(c.tail), len(p))
			c.tail = append(c.tail, p[:k]...)
			p = p[k:]
			continue
		}
		k := copy(c.tail[c.at:], p)
		c.at = (c.at + k) % size
		p = p[k:]
	}
	return n, nil
}

// bytes returns head and tail. headLen is the length of the head, or of everything if nothing
// was dropped.
func (c *capture) bytes() (out []byte, headLen int) {
	out = append(c.head, c.tail[c.at:]...)
	out = append(out, c.tail[:c.at]...)
	if int64(len(out)) == c.total {
		return out, len(out)
	}
	return out, len(c.head)
}

// drainTimeout is how long the guest waits for output after a program has ended, because its
// background processes may still hold the pipe.
const drainTimeout = 50 * time.Millisecond

// outputReader copies the output of a program to put until all writers have closed f. That may
// be long after the program has ended, because its background processes may continue to write.
type outputReader struct {
	f    *os.File
	put  func([]byte)
	done chan struct{} // closed after the last call of put
}

func newOutputReader(f *os.File, put func([]byte)) *outputReader {
	return &outputReader{f: f, put: put, done: make(chan struct{})}
}

// run returns when all writers have closed f, or when f is closed.
func (o *outputReader) run() {
	_, err := o.copy(o.f)
	// Each round has its own deadline, because a program could read its own output from f
	// and leave less than pending promises.
	for left := o.pending(); errors.Is(err, os.ErrDeadlineExceeded) && left > 0 && o.pending() > 0; {
		o.end()
		var n int64
		n, err = o.copy(io.LimitReader(o.f, left))
		left -= n
	}
	close(o.done)
	_ = o.f.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, o.f)
}

func (o *outputReader) copy(r io.Reader) (total int64, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			o.put(buf[:n])
		}
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// pending returns the number of bytes that can be read from f without waiting.
func (o *outputReader) pending() (n int64) {
	conn, err := o.f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if ready, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			n = int64(ready)
		}
	})
	return n
}

// end drops the output that is written more than drainTimeout from now. It never drops earlier
// output, even if the reader has had no processor time. Call it when the program has ended, and
// then wait for done.
func (o *outputReader) end() { _ = o.f.SetReadDeadline(time.Now().Add(drainTimeout)) }
