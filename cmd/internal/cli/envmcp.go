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
// env_patch and env_grade. Each session has its own environment. The first call of a
// session opens it, and the end of the session closes it. The calls of a session run one
// after another, through the same code as the line protocol.
type mcpEnv struct {
	server *mcp.Server
	open   func(context.Context) (*envLoop, error)

	mu       sync.Mutex
	closed   bool
	sessions map[*mcp.ServerSession]*mcpSession
	watchers sync.WaitGroup // one per session
}

// mcpSession is the environment of one client.
type mcpSession struct {
	lock   chan struct{}      // guards loop: a send locks, a receive unlocks
	loop   *envLoop           // nil before the first call
	ctx    context.Context    // ends with the session
	cancel context.CancelFunc // of ctx
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
	accepted := "it takes no arguments"
	if name == "reset" {
		accepted = "the only argument is soft"
	}
	if len(bytes.TrimSpace(args)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			return op{}, fmt.Errorf("%s%s: wrong arguments: %w", opPrefix, name, jsonError(err, accepted))
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
				return resultOf(errorAnswer(err)), nil
			}
			s, err := m.session(req.Session)
			if err != nil {
				return resultOf(errorAnswer(err)), nil
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.ctx, cancel)()
			defer notifyProgress(ctx, req, name)()
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
	s := &mcpSession{lock: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	m.sessions[client] = s
	m.watchers.Go(func() {
		_ = client.Wait() // it does not matter how the session ended
		m.mu.Lock()
		delete(m.sessions, client)
		m.mu.Unlock()
		s.close()
	})
	return s, nil
}

// do waits for earlier operations and executes one. It opens and resets the environment if
// needed. The error is the client's cancellation or the end of its session.
func (s *mcpSession) do(ctx context.Context, open func(context.Context) (*envLoop, error), o op) (answer, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	if s.ctx.Err() != nil {
		return answer{}, s.ctx.Err()
	}
	if s.loop == nil {
		loop, err := open(ctx)
		if err != nil {
			return errorAnswer(err), ctx.Err()
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
	a.DurationMS = s.loop.since(start)
	return a, ctx.Err()
}

// close cancels the running call and closes the environment.
func (s *mcpSession) close() {
	s.cancel()
	s.lock <- struct{}{} // wait for the running call; keep the lock, so that no other call starts
	if s.loop != nil {
		_ = s.loop.env.Close(context.Background()) // it takes a bounded time; no client is left to read an error
	}
}

// resultOf returns an answer as a tool's result: one text for each observation, beginning
// with that of the call, and the whole answer as structured content.
func resultOf(a answer) *mcp.CallToolResult {
	r := &mcp.CallToolResult{IsError: !a.OK || a.IsError}
	addText := func(text string) { r.Content = append(r.Content, &mcp.TextContent{Text: text}) }
	if !a.OK {
		addText(a.Error)
	}
	for i, o := range a.Observations {
		if i == 0 && a.OK || o.Text != "" {
			addText(o.Text)
		}
	}
	switch {
	case a.Verdict != nil:
		addText(verdictLine(*a.Verdict))
	case a.Patch != nil && *a.Patch == "":
		addText(unchanged)
	case a.Patch != nil:
		addText(*a.Patch)
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

// notifyProgress sends progress notifications to a client that asked for them, so that it
// does not give up on a long call. stop ends the notifications.
func notifyProgress(ctx context.Context, req *mcp.CallToolRequest, name string) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		start, tick := time.Now(), time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(start).Seconds(), Message: name + " is running"}
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
		s.cancel()
	}
	m.mu.Unlock()
	for client := range m.server.Sessions() {
		_ = client.Close() // the session ends even if this fails
	}
	m.watchers.Wait()
}

// serve speaks the protocol on standard input and output until ctx or the input ends. The
// end of the input also cancels running calls.
func (m *mcpEnv) serve(ctx context.Context, s *State) error {
	defer context.AfterFunc(ctx, m.cancelCalls)()
	in := &notifyingReader{Reader: s.Stdin, onEnd: m.cancelCalls}
	err := m.server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: nopCloser{s.Stdout}, MaxLineLength: maxOpLine})
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

// cancelCalls ends the contexts of all sessions, which cancels their running calls.
func (m *mcpEnv) cancelCalls() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		s.cancel()
	}
}

// notifyingReader calls onEnd when the reader ends or fails. Close does nothing, because a
// read of standard input cannot be interrupted: it ends with the process.
type notifyingReader struct {
	io.Reader
	onEnd func()
}

func (r *notifyingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.onEnd()
	}
	return n, err
}

// Close implements io.Closer.
func (r *notifyingReader) Close() error { return nil }

// nopCloser is a writer with a Close method that does nothing.
type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }
