package mutate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// conn is the connection to one mutator process.
type conn struct {
	term    env.Terminal
	pending []byte // read after the last line
	last    int    // ID of the last request
}

// ask sends a request and decodes its answer into the last argument. The error wraps errNoAnswer if the
// process ends or does not answer within timeout. It is a *RefusedError if the mutator refuses the
// request.
func (c *conn) ask(ctx context.Context, r request, timeout time.Duration, into answer) error {
	c.last++
	r.ID = c.last
	line, err := r.encode()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	if err := c.term.Write(ctx, line); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	reply, err := c.readLine(ctx, deadline)
	if err != nil {
		return err
	}
	return decode(reply, r, into)
}

// readLine reads one line and returns it without its line break. The error wraps errNoAnswer if the process
// ends, the deadline passes or the line is longer than about maxAnswer bytes.
func (c *conn) readLine(ctx context.Context, deadline time.Time) ([]byte, error) {
	for scanned := 0; ; {
		if n := slices.Index(c.pending[scanned:], '\n'); n >= 0 {
			line := c.pending[:scanned+n]
			c.pending = c.pending[scanned+n+1:]
			return line, nil
		}
		scanned = len(c.pending)
		if scanned > maxAnswer {
			return nil, fmt.Errorf("%w: its answer has more than %d bytes", errNoAnswer, maxAnswer)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, fmt.Errorf("%w: timeout", errNoAnswer)
		}
		chunk, err := c.term.Read(ctx, left)
		if errors.Is(err, io.EOF) {
			code, _ := c.term.Exit()
			return nil, fmt.Errorf("%w: it ended with exit code %d", errNoAnswer, code)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the mutator's answer: %w", err)
		}
		c.pending = append(c.pending, chunk...)
	}
}
