// Package mcp offers the tools of external Model Context Protocol servers to the
// agent. Open starts or connects to the servers before the first episode and fixes
// their tool lists for the run. Each call has a time limit, is canceled with its
// step, and is not sent again if the server may have executed it. Only a call that was
// interrupted before its answer was recorded is made again when its episode is resumed.
//
// Texts of a server go into prompts and datasets. The package therefore checks names
// and schemas, and cleans and shortens descriptions. Servers do not run in a sandbox:
// a command runs on the host.
//
// See https://modelcontextprotocol.io for the protocol.
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

// Config describes one server. Exactly one of Command and URL is set.
type Config struct {
	ID      string
	Command string
	Args    []string
	Env     map[string]string // values have the form env:NAME, with the name of a variable of the host

	URL          string
	Headers      map[string]string // a value may end in env:NAME
	SSE          bool              // the older HTTP transport
	AllowPrivate bool              // allow loopback and private addresses

	Prefix       string        // prefix of the tools' names
	Tools        []string      // globs of the tools to use, by the server's names; empty: all
	Timeout      time.Duration // limit of one call
	StartTimeout time.Duration // limit of start, handshake and tool list together
	PerEpisode   bool          // the server keeps state: each episode gets its own connection
	Optional     bool          // a server that cannot be used is skipped with a warning
}

// Deps holds the dependencies of Open.
type Deps struct {
	Getenv  func(string) string
	Warn    func(text string) // one line for the user; safe for concurrent use
	Version string            // of this program, for the handshake
}

// StartError means that a required server cannot be used.
type StartError struct {
	ID  string
	Err error
}

func (e *StartError) Error() string { return fmt.Sprintf("mcp.%s: %s", e.ID, brief(e.Err)) }
func (e *StartError) Unwrap() error { return e.Err }

// ErrNoVariable means that a configured environment variable of the host is not set.
var ErrNoVariable = errors.New("environment variable is not set")

// Servers holds the open servers of one process. It is safe for concurrent use.
type Servers struct {
	clients []*client
	tools   []tools.Tool
}

// Open connects to all servers concurrently and lists their tools. It then closes the
// connections to servers with PerEpisode. The error joins a *StartError for each server
// that cannot be used and is not optional. If there is no error, the caller must call
// Close.
func Open(ctx context.Context, list []Config, deps Deps) (*Servers, error) {
	s := &Servers{}
	loaded, errs := make([][]tools.Tool, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, cfg := range list {
		c := newClient(cfg, deps)
		s.clients = append(s.clients, c)
		wg.Go(func() { loaded[i], errs[i] = c.loadTools(ctx) })
	}
	wg.Wait()
	var failed []error
	for i, err := range errs {
		switch {
		case err == nil:
			s.tools = append(s.tools, loaded[i]...)
		case ctx.Err() == nil && list[i].Optional:
			deps.Warn(fmt.Sprintf("mcp.%s is skipped: %s", list[i].ID, brief(err)))
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

// Tools returns the tools in the order of the servers, sorted by name within each.
func (s *Servers) Tools() []tools.Tool { return s.tools }

// Close closes all connections and ends the processes that Open started.
func (s *Servers) Close() {
	var wg sync.WaitGroup
	for _, c := range s.clients {
		wg.Go(c.close)
	}
	wg.Wait()
}

const (
	maxListed  = 20_000 // tools in a server's list
	maxOffered = 128    // tools that match the setting tools; providers do not accept more
)

// loadTools connects to the server, lists its tools and converts them.
func (c *client) loadTools(ctx context.Context) ([]tools.Tool, error) {
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
	listed, err := c.allowedTools(ctx, conn)
	if err != nil {
		return nil, conn.explain(ctx, fmt.Errorf("listing its tools: %w", err))
	}
	if len(listed) > maxOffered {
		return nil, fmt.Errorf("it offers %d tools, more than the limit of %d: choose some with tools: [NAME, GLOB*]", len(listed), maxOffered)
	}
	if len(listed) == 0 {
		c.deps.Warn(fmt.Sprintf("mcp.%s offers no tools that match its setting tools", c.cfg.ID))
	}
	slices.SortFunc(listed, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	var out []tools.Tool
	seen := map[string]string{} // the server's names by the tools' names
	for _, foreign := range listed {
		t, err := newTool(c, foreign)
		if err != nil {
			c.deps.Warn(fmt.Sprintf("mcp.%s: tool %s is skipped: %s", c.cfg.ID, quoteStart(foreign.Name), brief(err)))
			continue
		}
		if other, ok := seen[t.schema.Name]; ok {
			return nil, fmt.Errorf("its tools %s and %s would both be named %s: allow only one of them with the setting tools", quoteStart(other), quoteStart(foreign.Name), t.schema.Name)
		}
		seen[t.schema.Name] = foreign.Name
		out = append(out, t)
	}
	return out, nil
}

// allowedTools returns the tools that the setting tools allows.
func (c *client) allowedTools(ctx context.Context, conn *connection) ([]*sdk.Tool, error) {
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

// sdkClient returns a client that supports only tools, and neither roots nor sampling
// nor elicitation.
func (c *client) sdkClient() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "tracesmith", Version: c.deps.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			c.changed.Do(func() {
				c.deps.Warn(fmt.Sprintf("mcp.%s reports that its tools have changed; the run continues with the tools it started with", c.cfg.ID))
			})
		},
	})
}
