package framing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// ErrBusy means that the process has not answered the previous command yet.
var ErrBusy = errors.New("the previous command is still running")

// DefaultLimit is the default number of bytes that a Conn keeps of the output of one command.
const DefaultLimit = 1 << 20

// Conn sends commands to one process and reads the output of each, which ends with a frame. It is
// not safe for concurrent use.
type Conn struct {
	term env.Terminal
	scan *Scanner
	out  Spool
	rest []byte // read after the last frame
	busy bool   // the frame of the last command has not arrived
}

// Reply is the answer to one command.
type Reply struct {
	Output
	Frame    json.RawMessage // nil when TimedOut or Exited
	TimedOut bool            // still running; Await continues to wait for its frame
	Exited   bool            // the process ended
	ExitCode int             // with Exited: 128+n when killed by signal n
}

// NewConn returns a Conn over term that keeps limit bytes of the output of each command. If limit
// is 0, it keeps DefaultLimit.
func NewConn(term env.Terminal, limit int) *Conn {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Conn{term: term, scan: &Scanner{}, out: Spool{Limit: limit}}
}

// Expect returns a new nonce. From now on, only frames with this nonce are accepted, so the next
// command must pass it to the process. Do not call Expect while a command is running.
func (c *Conn) Expect() (nonce string) {
	c.drain()
	nonce = rand.Text()
	c.scan.Expect(nonce)
	return nonce
}

// drain adds everything that was read to the output, except frames.
func (c *Conn) drain() {
	for len(c.rest) > 0 {
		_, c.rest = c.scan.Next(c.rest, c.out.Add)
	}
	c.scan.Flush(c.out.Add)
}

// Exchange writes input and waits for the next frame, at most timeout. Output that arrived between
// two exchanges belongs to the later one. After a timeout the command is still running, and
// Exchange returns ErrBusy until Await has returned its frame; Interrupt can end the command. After
// an error of the terminal or of ctx, call only Close.
func (c *Conn) Exchange(ctx context.Context, input []byte, timeout time.Duration) (Reply, error) {
	if c.busy {
		return Reply{}, ErrBusy
	}
	deadline := time.Now().Add(timeout)
	c.busy = true
	if err := c.write(ctx, input, deadline); err != nil {
		return Reply{}, fmt.Errorf("writing to the process: %w", err)
	}
	return c.await(ctx, deadline)
}

// write writes input. If the process does not read it before the deadline, write returns nil,
// because await reports the timeout. It also returns nil if the process has ended, because its
// output and exit code are more useful than the error.
func (c *Conn) write(ctx context.Context, input []byte, deadline time.Time) error {
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := c.term.Write(bounded, input)
	if _, ended := c.term.Exit(); ended || bounded.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// Await waits for the next frame, at most timeout, without sending anything.
func (c *Conn) Await(ctx context.Context, timeout time.Duration) (Reply, error) {
	c.busy = true
	return c.await(ctx, time.Now().Add(timeout))
}

// MarkEnded marks the running command as ended although its frame has not arrived, for example
// because another process has read it.
func (c *Conn) MarkEnded() { c.busy = false }

// maxLateReads limits the reads after the deadline if a process never stops writing.
const maxLateReads = 16

// await reads until a frame arrives, the process ends or the deadline passes. After the deadline it
// still reads what has already arrived, because this process may have been stopped, or its machine
// suspended, until after the deadline.
func (c *Conn) await(ctx context.Context, deadline time.Time) (Reply, error) {
	for lateReads, empty := 0, false; ; {
		var frame *Frame
		frame, c.rest = c.scan.Next(c.rest, c.out.Add)
		if frame != nil {
			c.busy = false
			return Reply{Output: c.out.Take(), Frame: frame.Body}, nil
		}
		wait := max(time.Until(deadline), 0)
		if wait == 0 {
			if lateReads > 0 && empty || lateReads == maxLateReads {
				return Reply{Output: c.out.Take(), TimedOut: true}, nil
			}
			lateReads++
		}
		p, err := c.term.Read(ctx, wait)
		c.rest, empty = p, len(p) == 0
		switch {
		case errors.Is(err, io.EOF):
			return c.ended()
		case err != nil:
			return Reply{}, fmt.Errorf("reading from the process: %w", err)
		}
	}
}

// ended returns the reply for a process that has ended.
func (c *Conn) ended() (Reply, error) {
	c.drain()
	c.busy = false
	code, _ := c.term.Exit()
	return Reply{Output: c.out.Take(), Exited: true, ExitCode: code}, nil
}

// Interrupt sends SIGINT to the process's foreground group.
func (c *Conn) Interrupt(ctx context.Context) error { return c.term.Interrupt(ctx) }

// Close kills the process and everything that it started.
func (c *Conn) Close(ctx context.Context) error { return c.term.Close(ctx) }
