package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracesmith/tracesmith/schemas"
)

// mcpEnv offers environments of one task to MCP clients: the environment's tools
// under their own names, and the operations of the line protocol as env_reset,
// env_patch and env_grade. Each session has its own environment, which its first call
// opens and its end closes. Calls of a session run one after another, by the code that
// serves lines.
type mcpEnv struct {
	server *mcp.Server
	open   func(context.Context) (*envLoop, error)

	mu       sync.Mutex
	closed   bool
	sessions map[*mcp.ServerSession]*mcpSession
	watches  sync.WaitGroup // one per session
}

// mcpSession is the environment of one client.
type mcpSession struct {
	turn chan struct{} // holds the right to use loop
	loop *envLoop      // nil before the first call
	life context.Context
	end  context.CancelFunc
}

// maxMCPSessions bounds the sandboxes that clients can start.
const maxMCPSessions = 64

// operations lists what a client can do besides calling a tool.
var operations = []struct{ op, description, schema string }{
	{
		"reset", "Start over in a fresh sandbox with the original program. The first call to any tool does this automatically. " +
			"With soft, the sandbox and its files are kept, and only the debugger and the state of the session are reset.",
		`{"type":"object","properties":{"soft":{"type":["boolean","null"],"description":"Keep the sandbox and its files."}},"additionalProperties":false}`,
	},
	{"patch", "Show your changes so far as a Git patch against the original program.", `{"type":"object","properties":{},"additionalProperties":false}`},
	{
		"grade", "Grade your changes so far in a fresh sandbox, with the task's own versions of its tests. Your session is not affected.",
		`{"type":"object","properties":{},"additionalProperties":false}`,
	},
}

const opPrefix = "env_"

func newMCPEnv(task schemas.Task, tools []schemas.ToolSchema, open func(context.Context) (*envLoop, error)) (*mcpEnv, error) {
	m := &mcpEnv{open: open, sessions: map[*mcp.ServerSession]*mcpSession{}}
	// Protocols from 2026-07-28 on have no sessions over HTTP, so that a client could
	// not return to its environment.
	var versions []string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < "2026-07-28" {
			versions = append(versions, v)
		}
	}
	m.server = mcp.NewServer(&mcp.Implementation{Name: "tracesmith", Title: "tracesmith: " + task.InstanceID, Version: Version}, &mcp.ServerOptions{
		Instructions: strings.TrimSpace(task.Instructions) + "\n\nThe program is in a sandbox, and the tools work there. The sandbox starts with your first call. " +
			"env_reset starts over, env_patch shows your changes, and env_grade grades them.",
		Capabilities:              &mcp.ServerCapabilities{},
		SupportedProtocolVersions: versions,
	})
	for _, t := range tools {
		if strings.HasPrefix(t.Name, opPrefix) {
			return nil, fmt.Errorf("tool %q: names that begin with %s are the server's own", t.Name, opPrefix)
		}
		m.add(t.Name, t.Description, t.Parameters, func(args json.RawMessage) (op, error) {
			return op{Op: "step", Tool: t.Name, Arguments: args}, nil
		})
	}
	for _, o := range operations {
		m.add(opPrefix+o.op, o.description, json.RawMessage(o.schema), func(args json.RawMessage) (op, error) {
			return parseOperation(o.op, args)
		})
	}
	return m, nil
}

// parseOperation reads the arguments of an operation strictly.
func parseOperation(name string, args json.RawMessage) (op, error) {
	var in struct {
		Soft *bool `json:"soft"`
	}
	known := "it takes no arguments"
	if name == "reset" {
		known = "the only argument is soft"
	}
	if len(bytes.TrimSpace(args)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			return op{}, fmt.Errorf("%s%s: wrong arguments: %w", opPrefix, name, inJSON(err, known))
		}
	}
	if in.Soft != nil && name != "reset" {
		return op{}, fmt.Errorf("%s%s takes no arguments", opPrefix, name)
	}
	return op{Op: name, Soft: in.Soft != nil && *in.Soft}, nil
}

func (m *mcpEnv) add(name, description string, schema json.RawMessage, read func(json.RawMessage) (op, error)) {
	m.server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: schema},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			o, err := read(req.Params.Arguments)
			if err != nil {
				return resultOf(failed(err)), nil
			}
			s, err := m.session(req.Session)
			if err != nil {
				return resultOf(failed(err)), nil
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.life, cancel)()
			defer tellProgress(ctx, req, name)()
			a, err := s.do(ctx, m.open, o)
			if err != nil {
				return nil, err
			}
			return resultOf(a), nil
		})
}

// session returns the environment of a client, and creates it if needed.
func (m *mcpEnv) session(client *mcp.ServerSession) (*mcpSession, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[client]; s != nil {
		return s, nil
	}
	switch {
	case m.closed:
		return nil, errors.New("the server is closing")
	case len(m.sessions) >= maxMCPSessions:
		return nil, fmt.Errorf("%d sessions are open, and no more are possible: end one", maxMCPSessions)
	}
	s := &mcpSession{turn: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	m.sessions[client] = s
	m.watches.Go(func() {
		_ = client.Wait() // how it ended does not matter
		m.mu.Lock()
		delete(m.sessions, client)
		m.mu.Unlock()
		s.close()
	})
	return s, nil
}

// do waits for its turn and executes one operation. The error is the client's
// cancellation or the end of its session.
func (s *mcpSession) do(ctx context.Context, open func(context.Context) (*envLoop, error), o op) (answer, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	if s.life.Err() != nil {
		return answer{}, s.life.Err()
	}
	if s.loop == nil {
		loop, err := open(ctx)
		if err != nil {
			return failed(err), ctx.Err()
		}
		s.loop = loop
	}
	start := s.loop.now()
	if !s.loop.ready && o.Op != "reset" {
		if a := s.loop.do(ctx, op{Op: "reset"}); !a.OK {
			return a, ctx.Err()
		}
	}
	a := s.loop.do(ctx, o)
	a.DurationMS = s.loop.now() - start
	return a, ctx.Err()
}

// close cancels the running call and closes the environment.
func (s *mcpSession) close() {
	s.end()
	s.turn <- struct{}{} // the running call has returned, and no other may start
	if s.loop != nil {
		_ = s.loop.env.Close(context.Background()) // bounded; no client is left to read an error
	}
}

// resultOf returns an answer as a tool's result: a text per observation, that of the
// call first, and the whole answer as structured content.
func resultOf(a answer) *mcp.CallToolResult {
	r := &mcp.CallToolResult{IsError: !a.OK || a.IsError}
	say := func(text string) { r.Content = append(r.Content, &mcp.TextContent{Text: text}) }
	if !a.OK {
		say(a.Error)
	}
	for i, o := range a.Observations {
		if i == 0 && a.OK || o.Text != "" {
			say(o.Text)
		}
	}
	switch {
	case a.Verdict != nil:
		say(verdictLine(*a.Verdict))
	case a.Patch != nil && *a.Patch == "":
		say(unchanged)
	case a.Patch != nil:
		say(*a.Patch)
	}
	a.Tools = nil // the client has listed them
	r.StructuredContent = a
	return r
}

// unchanged replaces an empty patch.
const unchanged = "Nothing has been changed."

func verdictLine(v schemas.Verdict) string {
	word := "Not resolved"
	if v.Resolved != nil && *v.Resolved {
		word = "Resolved"
	}
	line := fmt.Sprintf("%s (%s).", word, v.Status)
	if v.Reason != "" {
		line += " " + v.Reason
	}
	return line
}

// progressEvery is the interval between progress notifications.
const progressEvery = 2 * time.Second

// tellProgress notifies a client that asked for progress, so that it does not give up
// on a long call. The returned function ends it.
func tellProgress(ctx context.Context, req *mcp.CallToolRequest, name string) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		began, tick := time.Now(), time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(began).Seconds(), Message: name + " is running"}
			if req.Session.NotifyProgress(ctx, params) != nil {
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// close ends all sessions and waits for their environments.
func (m *mcpEnv) close() {
	m.mu.Lock()
	m.closed = true
	for _, s := range m.sessions {
		s.end()
	}
	m.mu.Unlock()
	for client := range m.server.Sessions() {
		_ = client.Close() // it ends either way
	}
	m.watches.Wait()
}

// serve speaks the protocol on standard input and output until ctx or the input ends.
// The end of the input also cancels running calls.
func (m *mcpEnv) serve(ctx context.Context, s *State) error {
	defer context.AfterFunc(ctx, m.stop)()
	in := &untilEnd{Reader: s.Stdin, end: m.stop}
	err := m.server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: keepOpen{s.Stdout}, MaxLineLength: maxOpLine})
	m.close()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, syscall.EPIPE) {
		return silentExit{ExitPipe}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return &Error{Code: ExitUsage, Err: fmt.Errorf("the MCP client broke the protocol: %w", err)}
	}
	return nil
}

// stop cancels running calls; the sessions then end.
func (m *mcpEnv) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		s.end()
	}
}

// untilEnd calls end when the reader ends. Close does nothing: a read of standard input
// cannot be interrupted, and ends with the process.
type untilEnd struct {
	io.Reader
	end func()
}

func (r *untilEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.end()
	}
	return n, err
}

// Close implements io.Closer.
func (r *untilEnd) Close() error { return nil }

type keepOpen struct{ io.Writer }

// Close implements io.Closer.
func (keepOpen) Close() error { return nil }
