package mcp

import (
	"context"
	"encoding/json"
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

// client keeps at most one connection to a server. It connects when a connection is
// needed and replaces a broken one.
type client struct {
	cfg     Config
	deps    Deps
	changed *sync.Once // runs the warning that the server's tools have changed

	connecting chan struct{} // a lock of capacity 1, held while a connection is made
	mu         sync.Mutex
	conn       *connection    // nil if there is no connection
	ending     sync.WaitGroup // connections that are being closed
}

func newClient(cfg Config, deps Deps) *client {
	return &client{cfg: cfg, deps: deps, changed: &sync.Once{}, connecting: make(chan struct{}, 1)}
}

// fork returns a client of the same server for one episode.
func (c *client) fork() *client {
	f := newClient(c.cfg, c.deps)
	f.changed = c.changed
	return f
}

// connection is one session with a server over a link.
type connection struct {
	session *sdk.ClientSession
	link    link
	calls   atomic.Int32 // in flight
}

// link is the transport of a session: a process or HTTP requests.
type link interface {
	sdk.Transport
	// received returns the number of bytes received so far.
	received() int64
	// cause returns what is known about why the link failed, or "".
	cause() string
	// cut ends the link without the server's cooperation and returns when it has ended.
	cut()
}

var (
	errStart = errors.New("start timeout")
	errCall  = errors.New("call timeout")
)

// closeGrace bounds how long a server may take to close its session.
const closeGrace = 2 * time.Second

// acquire returns the connection. If there is no connection, it makes one. The caller must
// release the connection.
func (c *client) acquire(ctx context.Context) (*connection, error) {
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
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
	stop := context.AfterFunc(ctx, l.cut) // ends a handshake that hangs
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

// explain adds the cause that the link knows to an error and, if start_timeout has passed,
// says so.
func (conn *connection) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStart) {
		err = fmt.Errorf("no answer within its start_timeout (%w)", err)
	}
	if cause := conn.link.cause(); cause != "" {
		err = fmt.Errorf("%w; %s", err, cause)
	}
	return err
}

// drop removes a connection and closes it. Other calls that use it fail.
func (c *client) drop(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return // another caller was first
	}
	c.conn = nil
	c.ending.Go(conn.end)
}

// end closes the session. After closeGrace it cuts the link.
func (conn *connection) end() {
	timer := time.AfterFunc(closeGrace, conn.link.cut)
	_ = conn.session.Close() // the connection is dropped either way
	timer.Stop()
	conn.link.cut()
}

// close closes the connection and waits until all dropped connections are closed.
func (c *client) close() {
	c.connecting <- struct{}{} // prevents new connections
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		c.drop(conn)
	}
	c.ending.Wait()
	<-c.connecting
}

// brokenCodes are error codes that the SDK returns, and not a server: the connection is
// closing, the server has closed it, or it rejected the message.
var brokenCodes = []int64{-32003, -32004, -32005}

// delivery records whether a call may have reached the server. Links get it from the
// context of the message that they send.
type delivery struct{ sent atomic.Bool }

type deliveryKey struct{}

func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(deliveryKey{}).(*delivery)
	return d
}

// maybeSent records that the server may have the call now. d may be nil.
func (d *delivery) maybeSent() {
	if d != nil {
		d.sent.Store(true)
	}
}

// notSent records that the server did not accept the call. d may be nil.
func (d *delivery) notSent() {
	if d != nil {
		d.sent.Store(false)
	}
}

// call sends one call. If the connection is broken and the call was not sent, call
// reconnects once. Its errors are a *tools.UserError, which also says whether the server
// may have the call, a *timeoutError, or the error of ctx.
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
			return nil, tools.NewUserError("The call was not made because the tool's server %s cannot be reached: %s.", c.cfg.ID, brief(err))
		}
		d := &delivery{}
		received := conn.link.received()
		res, err := conn.session.CallTool(context.WithValue(bounded, deliveryKey{}, d), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		isLast := conn.calls.Add(-1) == 0
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if bounded.Err() != nil {
			if isLast && conn.link.received() == received {
				c.drop(conn) // the server has sent nothing, so it may be dead
			}
			return nil, &timeoutError{limit: limit, sent: d.sent.Load()}
		}
		if rpcErr, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(brokenCodes, rpcErr.Code) {
			return nil, tools.NewUserError("The server %s refused the call: %s", c.cfg.ID, brief(rpcErr))
		}
		c.drop(conn)
		if d.sent.Load() {
			return nil, tools.NewUserError("The connection to the server %s was lost during this call (%s). The server may have executed the call, so it was not sent again; "+
				"check before you repeat it. The next call opens a new connection, and the server's in-memory state is lost.", c.cfg.ID, brief(conn.explain(bounded, err)))
		}
		if try > 0 {
			return nil, tools.NewUserError("The call was not made because the connection to the tool's server %s was lost: %s.",
				c.cfg.ID, brief(conn.explain(bounded, err)))
		}
	}
}

// timeoutError means that the server did not answer within limit.
type timeoutError struct {
	limit time.Duration
	sent  bool
}

func (e *timeoutError) Error() string {
	if !e.sent {
		return fmt.Sprintf("The server did not accept the call within %g s, so the call was not made.", e.limit.Seconds())
	}
	return fmt.Sprintf("The server did not answer within %g s. The call was canceled, but the server may have executed it; check before you repeat it.", e.limit.Seconds())
}

// brief returns an error as one line of at most 600 characters, because it may contain
// text of a server of any length.
func brief(err error) string {
	s := err.Error()
	s = strings.Join(strings.Fields(tools.Clean(s[:min(len(s), 64<<10)])), " ")
	return strings.TrimSuffix(clip(s, 600), ".")
}
