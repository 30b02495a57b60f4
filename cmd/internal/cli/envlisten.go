package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpIdle is how long a session may be idle before its environment is closed.
const mcpIdle = 30 * time.Minute

// listen serves MCP over streamable HTTP at an address until ctx ends, and then returns the
// cause of ctx. Each session has its own environment.
func (m *mcpEnv) listen(ctx context.Context, s *State, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Usage(fmt.Errorf("--mcp-listen %s: write HOST:PORT, or :PORT for loopback", address))
	}
	host = cmp.Or(host, "127.0.0.1")
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return Usage(fmt.Errorf("--mcp-listen: %w", err))
	}
	if a, ok := ln.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(s.Stderr, "warning: anyone who can reach this address can run programs in sandboxes here, without a password")
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m.server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: mcpIdle, MaxRequestBodyBytes: maxOpLine,
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(handler))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(s.Stderr, "MCP server at http://%s/mcp\n", ln.Addr())
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	err = srv.Serve(ln)
	m.close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, http.ErrServerClosed):
		return nil
	}
	return fmt.Errorf("serving MCP: %w", err)
}
