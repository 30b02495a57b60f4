package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracesmith/tracesmith/tools"
)

// client keeps at most one live connection to a server: made when it is needed,
// replaced when it is dead.
type client struct {
	cfg     Config
	deps    Deps
	changed *sync.Once // the server has said that its tools changed

	turn   chan struct{} // holds the right to make or replace conn
	mu     sync.Mutex
	conn   *connection // nil: none
	ending sync.WaitGroup
}

func newClient(cfg Config, deps Deps) *client {
	return &client{cfg: cfg, deps: deps, changed: &sync.Once{}, turn: make(chan struct{}, 1)}
}

// fork is a client of the same server for one episode.
func (c *client) fork() *client {
	f := newClient(c.cfg, c.deps)
	f.changed = c.changed
	return f
}

// connection is one session with a server and what carries it.
type connection struct {
	session *sdk.ClientSession
	link    link
	calls   atomic.Int32 // in flight
}

// link is what carries a session: a process or HTTP requests.
type link interface {
	sdk.Transport
	// heard counts what has arrived; it only grows.
	heard() int64
	// said is what else is known of why it failed, "" if nothing.
	said() string
	// cut ends it, whatever the other end does, and returns when it has ended.
	cut()
}

var (
	errStart = errors.New("start timeout")
	errCall  = errors.New("call timeout")
)

// closeGrace is how long a server may take to say goodbye.
const closeGrace = 2 * time.Second

// acquire returns the live connection, making one if there is none.
func (c *client) acquire(ctx context.Context) (*connection, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	conn := c.conn
	if conn != nil {
		conn.calls.Add(1)
	}
	c.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn.calls.Add(1)
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return conn, nil
}

func (c *client) release(conn *connection) { conn.calls.Add(-1) }

func (c *client) connect(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.StartTimeout, errStart)
	defer cancel()
	l, err := c.newLink()
	if err != nil {
		return nil, err
	}
	conn := &connection{link: l}
	stop := context.AfterFunc(ctx, l.cut) // a handshake that hangs ends with its link
	conn.session, err = c.sdkClient().Connect(ctx, l, nil)
	if err == nil && !stop() {
		err = context.Cause(ctx)
		_ = conn.session.Close()
	}
	if err != nil {
		stop()
		l.cut()
		return nil, conn.explain(ctx, fmt.Errorf("connecting: %w", err))
	}
	return conn, nil
}

func (c *client) newLink() (link, error) {
	if c.cfg.Command != "" {
		env, err := c.cfg.environment(c.deps.Getenv)
		if err != nil {
			return nil, err
		}
		return &process{command: c.cfg.Command, args: c.cfg.Args, env: env}, nil
	}
	headers, err := c.cfg.headers(c.deps.Getenv)
	if err != nil {
		return nil, err
	}
	return newHTTPLink(c.cfg, headers)
}

// explain adds to an error how long was waited, and what else is known.
func (conn *connection) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStart) {
		err = fmt.Errorf("no answer within its start_timeout (%w)", err)
	}
	if said := conn.link.said(); said != "" {
		err = fmt.Errorf("%w; %s", err, said)
	}
	return err
}

// drop forgets a connection and ends it. Others that still wait for it see it
// close.
func (c *client) drop(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return // another caller was first
	}
	c.conn = nil
	c.ending.Go(conn.end)
}

// end says goodbye and insists after a while.
func (conn *connection) end() {
	timer := time.AfterFunc(closeGrace, conn.link.cut)
	_ = conn.session.Close() // the reason it is closed has been told
	timer.Stop()
	conn.link.cut()
}

// close ends what is open.
func (c *client) close() {
	c.turn <- struct{}{} // nobody connects any more
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		c.drop(conn)
	}
	c.ending.Wait()
	<-c.turn
}

// brokenCodes are what the protocol library itself answers with: its connection
// is closing, closed by the server, or did not take the message.
var brokenCodes = []int64{-32003, -32004, -32005}

// delivery tells whether a call may have reached the server; links find it in
// the context of what they send.
type delivery struct{ sent atomic.Bool }

type deliveryKey struct{}

func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(deliveryKey{}).(*delivery)
	return d
}

// maybe notes that the server may have it now. Safe on nil.
func (d *delivery) maybe() {
	if d != nil {
		d.sent.Store(true)
	}
}

// never notes that the server said it did not take it.
func (d *delivery) never() {
	if d != nil {
		d.sent.Store(false)
	}
}

// call sends one call. A connection that turns out to be dead is replaced, once,
// if the call never left; otherwise the model is told that it may have been
// carried out. The error is the caller's own cancellation.
func (c *client) call(ctx context.Context, limit time.Duration, name string, args []byte) (*sdk.CallToolResult, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errCall)
	defer cancel()
	for try := 0; ; try++ {
		conn, err := c.acquire(bounded)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if bounded.Err() != nil {
			return nil, &timeoutError{limit: limit}
		}
		if err != nil {
			return nil, tools.Mistake("The server %s of this tool cannot be reached, so the call was not made: %s.", c.cfg.ID, brief(err))
		}
		d := &delivery{}
		heard := conn.link.heard()
		res, err := conn.session.CallTool(context.WithValue(bounded, deliveryKey{}, d), &sdk.CallToolParams{Name: name, Arguments: raw(args)})
		alone := conn.calls.Add(-1) == 0
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if bounded.Err() != nil {
			if alone && conn.link.heard() == heard {
				c.drop(conn) // it does not even breathe
			}
			return nil, &timeoutError{limit: limit, sent: d.sent.Load()}
		}
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(brokenCodes, refused.Code) {
			return nil, tools.Mistake("The server %s refused the call: %s", c.cfg.ID, brief(refused))
		}
		c.drop(conn)
		if d.sent.Load() {
			return nil, tools.Mistake("The connection to the server %s broke while this call ran (%s). The call may have been carried out, so it was not sent again; "+
				"check before you repeat it. The next call opens a new connection: what the server kept in memory is gone.", c.cfg.ID, brief(conn.explain(bounded, err)))
		}
		if try > 0 {
			return nil, tools.Mistake("The server %s of this tool is gone, so the call was not made: %s.", c.cfg.ID, brief(conn.explain(bounded, err)))
		}
	}
}

// timeoutError: no answer in time.
type timeoutError struct {
	limit time.Duration
	sent  bool
}

func (e *timeoutError) Error() string {
	if !e.sent {
		return fmt.Sprintf("The server took no call within %g s, so this one was not made.", e.limit.Seconds())
	}
	return fmt.Sprintf("The server did not answer within %g s. The call was cancelled, but it may have been carried out; check before you repeat it.", e.limit.Seconds())
}

// brief is an error as one line of at most 600 characters: it holds foreign
// text, of any length.
func brief(err error) string {
	s := err.Error()
	s = strings.Join(strings.Fields(tools.Clean(s[:min(len(s), 64<<10)])), " ")
	return strings.TrimSuffix(clip(s, 600), ".")
}
