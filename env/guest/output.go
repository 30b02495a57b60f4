package guest

import (
	"os"
	"sync"
	"time"
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

// outputReader reads the output of a program until all writers have closed it. That may be
// long after the program has ended, because its background processes may continue to write.
type outputReader struct {
	mu     sync.Mutex
	out    *capture // nil once finished
	closed chan struct{}
}

func readOutput(f *os.File, out *capture) *outputReader {
	o := &outputReader{out: out, closed: make(chan struct{})}
	go func() {
		defer close(o.closed)
		defer f.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			o.mu.Lock()
			if o.out != nil {
				_, _ = o.out.Write(buf[:n])
			}
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

// finish waits for the end of the output, at most drainTimeout. Later output is dropped.
func (o *outputReader) finish() {
	select {
	case <-o.closed:
	case <-time.After(drainTimeout):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out = nil
}
