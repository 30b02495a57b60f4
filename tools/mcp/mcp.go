// Package mcp makes the tools of external Model Context Protocol servers tools of
// the agent: servers are started or reached before the first episode, their tool
// lists fixed for the run, and each call bounded, cancelled with its step, and
// never sent twice where the server may have carried it out.
//
// What a server says is foreign text that goes into prompts and datasets: names
// and schemas are checked, descriptions cleaned and capped. A server is not in a
// sandbox: a command runs on the host, and a url is whatever answers there.
//
// It imports tools, env and schemas. Protocol: https://modelcontextprotocol.io
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracesmith/tracesmith/tools"
)

// Config is one server. Exactly one of Command and URL is set.
type Config struct {
	ID      string
	Command string
	Args    []string
	Env     map[string]string // NAME: env:HOSTNAME

	URL          string
	Headers      map[string]string // a value may end in env:NAME
	SSE          bool              // the older HTTP transport
	AllowPrivate bool              // loopback and private addresses may be reached

	Prefix       string        // of the tools' names
	Tools        []string      // globs of the server's own names; empty: all
	Timeout      time.Duration // of one call
	StartTimeout time.Duration // of starting, shaking hands and listing
	PerEpisode   bool          // the server keeps state: each episode gets a connection of its own
	Optional     bool          // a server that cannot be started is left out with a warning
}

// Deps are what servers are opened with.
type Deps struct {
	Getenv  func(string) string
	Warn    func(text string) // one line for the user; safe for concurrent use
	Version string            // of this program, for the handshake
}

// StartError says that a required server cannot be used.
type StartError struct {
	ID  string
	Err error
}

func (e *StartError) Error() string { return fmt.Sprintf("mcp.%s: %s", e.ID, brief(e.Err)) }
func (e *StartError) Unwrap() error { return e.Err }

// ErrNoVariable: a host variable that a server is to be given is not set.
var ErrNoVariable = errors.New("environment variable is not set")

// Servers are the open servers of one process. Safe for concurrent use.
type Servers struct {
	clients []*client
	tools   []tools.Tool
}

// Open starts or reaches all servers at once, lists their tools and closes again
// what each episode opens for itself. A server that cannot be used is a
// StartError, or left out if it is optional. Close the Servers in any case but
// an error.
func Open(ctx context.Context, list []Config, deps Deps) (*Servers, error) {
	s := &Servers{}
	offers, errs := make([][]tools.Tool, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, cfg := range list {
		c := newClient(cfg, deps)
		s.clients = append(s.clients, c)
		wg.Go(func() { offers[i], errs[i] = c.offer(ctx) })
	}
	wg.Wait()
	var failed []error
	for i, err := range errs {
		switch {
		case err == nil:
			s.tools = append(s.tools, offers[i]...)
		case ctx.Err() == nil && list[i].Optional:
			deps.Warn(fmt.Sprintf("mcp.%s is left out: %s", list[i].ID, brief(err)))
		default:
			failed = append(failed, &StartError{list[i].ID, err})
		}
	}
	if len(failed) > 0 {
		s.Close()
		return nil, errors.Join(failed...)
	}
	return s, nil
}

// Tools are the offered tools, servers in the order given, tools by name.
func (s *Servers) Tools() []tools.Tool { return s.tools }

// Close ends all connections and the processes behind them.
func (s *Servers) Close() {
	var wg sync.WaitGroup
	for _, c := range s.clients {
		wg.Go(c.close)
	}
	wg.Wait()
}

// Bounds of what a server may offer.
const (
	maxListed  = 20_000 // tools in its list
	maxOffered = 128    // tools left by the allow-list; providers take no more
)

// offer connects, lists the tools and turns them into ours.
func (c *client) offer(ctx context.Context) ([]tools.Tool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.StartTimeout, errStart)
	defer cancel()
	conn, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.release(conn)
	if c.cfg.PerEpisode {
		defer c.drop(conn)
	}
	listed, err := c.list(ctx, conn)
	if err != nil {
		return nil, conn.explain(ctx, fmt.Errorf("listing its tools: %w", err))
	}
	if len(listed) > maxOffered {
		return nil, fmt.Errorf("it offers %d tools, more than %d: choose some with tools: [NAME, GLOB*]", len(listed), maxOffered)
	}
	if len(listed) == 0 {
		c.deps.Warn(fmt.Sprintf("mcp.%s offers no tools that its setting tools lets through", c.cfg.ID))
	}
	slices.SortFunc(listed, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	var out []tools.Tool
	seen := map[string]string{}
	for _, foreign := range listed {
		t, err := newTool(c, foreign)
		if err != nil {
			c.deps.Warn(fmt.Sprintf("mcp.%s: tool %s is left out: %s", c.cfg.ID, show(foreign.Name), brief(err)))
			continue
		}
		if twin, twice := seen[t.schema.Name]; twice {
			return nil, fmt.Errorf("its tools %s and %s are both called %s here", show(twin), show(foreign.Name), t.schema.Name)
		}
		seen[t.schema.Name] = foreign.Name
		out = append(out, t)
	}
	return out, nil
}

// list reads the tools that the allow-list lets through, page by page.
func (c *client) list(ctx context.Context, conn *connection) ([]*sdk.Tool, error) {
	var out []*sdk.Tool
	n := 0
	for t, err := range conn.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if n++; n > maxListed {
			return nil, fmt.Errorf("its list does not end after %d tools", maxListed)
		}
		if t != nil && c.cfg.allows(t.Name) {
			out = append(out, t)
		}
	}
	return out, nil
}

// sdkClient is the protocol's client half: tools only, no roots, no sampling, no
// questions to a user.
func (c *client) sdkClient() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "tracesmith", Version: c.deps.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			c.changed.Do(func() {
				c.deps.Warn(fmt.Sprintf("mcp.%s says that its tools have changed; the run goes on with those it began with", c.cfg.ID))
			})
		},
	})
}
