package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// writeTimeout is how long a program may leave its input unread.
const writeTimeout = 30 * time.Second

// Terminal implements env.Terminal.
type Terminal struct {
	c  *Client
	id uint64

	mu    sync.Mutex
	ended bool
	code  int
	limit string
}

// Open implements env.Sandbox.
func (c *Client) Open(ctx context.Context, spec env.TerminalSpec) (env.Terminal, error) {
	if len(spec.Args) == 0 {
		return nil, errors.New("opening a terminal: no program given")
	}
	t := &Terminal{c: c, id: c.ids.Add(1)}
	_, err := call(ctx, c, shortTimeout, c.svc.Open, &guestpb.OpenRequest{
		Id: t.id, Args: toByteSlices(spec.Args), Dir: c.guestPath(spec.Dir), Env: toByteSlices(spec.Env), Pty: spec.PTY,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a terminal for %s: %w", spec.Args[0], err)
	}
	return t, nil
}

// Write implements env.Terminal. It waits while the program does not read, until ctx ends or
// writeTimeout has passed. The program may have received a part of p by then.
func (t *Terminal) Write(ctx context.Context, p []byte) error {
	defer t.c.trackRunning()()
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for len(p) > 0 {
		n := min(len(p), pieceBytes)
		if _, err := call(bounded, t.c, writeTimeout, t.c.svc.Write, &guestpb.WriteRequest{Id: t.id, Data: p[:n]}); err != nil {
			return fmt.Errorf("writing to the terminal: %w", err)
		}
		p = p[n:]
	}
	return nil
}

// Read implements env.Terminal.
func (t *Terminal) Read(ctx context.Context, wait time.Duration) ([]byte, error) {
	defer t.c.trackRunning()()
	if _, ended := t.Exit(); ended {
		return nil, io.EOF
	}
	r, err := call(ctx, t.c, wait, t.c.svc.Read, &guestpb.ReadRequest{Id: t.id, WaitNs: int64(max(wait, 0))})
	if err != nil {
		return nil, fmt.Errorf("reading the terminal: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Limit != "" {
		t.limit = oneOf(r.Limit, "memory", "processes")
	}
	if r.Eof {
		t.ended, t.code = true, int(r.ExitCode)
		return nil, io.EOF
	}
	if len(r.Data) == 0 {
		return nil, nil
	}
	return r.Data, nil
}

// Interrupt implements env.Terminal.
func (t *Terminal) Interrupt(ctx context.Context) error {
	_, err := call(ctx, t.c, shortTimeout, t.c.svc.Interrupt, &guestpb.TerminalRequest{Id: t.id})
	return err
}

// Mark implements env.Terminal. The guest remembers the last 16 marks.
func (t *Terminal) Mark(ctx context.Context) (uint64, error) {
	r, err := call(ctx, t.c, shortTimeout, t.c.svc.Mark, &guestpb.TerminalRequest{Id: t.id})
	if err != nil {
		return 0, fmt.Errorf("marking the terminal's processes: %w", err)
	}
	return r.Mark, nil
}

// KillChildren implements env.Terminal.
func (t *Terminal) KillChildren(ctx context.Context, mark uint64) error {
	defer t.c.trackRunning()()
	_, err := call(ctx, t.c, shortTimeout, t.c.svc.KillChildren, &guestpb.KillRequest{Id: t.id, Mark: mark})
	if err != nil {
		return fmt.Errorf("killing the terminal's processes: %w", err)
	}
	return nil
}

// Close implements env.Terminal. Safe to call twice.
func (t *Terminal) Close(ctx context.Context) error {
	_, err := call(ctx, t.c, shortTimeout, t.c.svc.Close, &guestpb.TerminalRequest{Id: t.id})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended, t.code = true, 137
	}
	if errors.Is(err, env.ErrNotExist) || errors.Is(err, env.ErrSandboxDied) {
		return nil
	}
	return err
}

// Exit implements env.Terminal. ended is true once Read has returned io.EOF or Close has been
// called. If Close came first, code is 137, as for a process that SIGKILL ended.
func (t *Terminal) Exit() (code int, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.code, t.ended
}

// Limit implements env.LimitReporter.
func (t *Terminal) Limit() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit
}
