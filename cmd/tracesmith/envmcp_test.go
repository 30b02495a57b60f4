package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient is an MCP client of `tracesmith env --mcp`.
type mcpClient struct {
	t       *testing.T
	session *mcp.ClientSession
}

func connect(t *testing.T, transport mcp.Transport, opts *mcp.ClientOptions) *mcpClient {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &mcpClient{t, session}
}

// mcpCommand returns the command with which a client starts the server.
func mcpCommand(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "tracesmith", append([]string{"env", "--mcp"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// call calls a tool and returns the result's text and its structured content.
func (c *mcpClient) call(ctx context.Context, tool, arguments string) (string, answer, error) {
	c.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}
	params.SetProgressToken("p-" + tool)
	res, err := c.session.CallTool(ctx, params)
	if err != nil {
		return "", answer{}, err
	}
	var texts []string
	for _, part := range res.Content {
		texts = append(texts, part.(*mcp.TextContent).Text)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		c.t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		c.t.Fatal(err)
	}
	if res.IsError != (a.IsError || !a.OK) {
		c.t.Errorf("%s: isError %v beside %s", tool, res.IsError, b)
	}
	return strings.Join(texts, "\n\n"), a, nil
}

// must calls a tool and fails the test unless the call succeeds and its text contains want.
func (c *mcpClient) must(tool, arguments, want string) answer {
	c.t.Helper()
	text, a, err := c.call(c.t.Context(), tool, arguments)
	if err != nil || !a.OK || !strings.Contains(text, want) {
		c.t.Fatalf("%s %s: %v, %+v, %q; want %q", tool, arguments, err, a, text, want)
	}
	return a
}

// An MCP client other than tracesmith's own debugs, fixes and grades the program.
func TestEnvAsMCPServer(t *testing.T) {
	t.Parallel()
	cmd := mcpCommand(t, "--task", "stockroom")
	var progress atomic.Int32
	c := connect(t, &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Minute}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) },
	})
	if i := c.session.InitializeResult(); !strings.HasPrefix(i.Instructions, "The evening report") {
		t.Errorf("instructions: %q", i.Instructions)
	}
	var names []string
	for tool, err := range c.session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "bash edit env_grade env_patch env_reset eval grep listdir pdb submit view" {
		t.Errorf("tools: %s", got)
	}
	c.must("env_patch", `{}`, "Nothing has been changed.") // the first call starts the environment
	if a := c.must("pdb", `{"command":"b stockroom/store.py:43, len(self._levels) > 1"}`, "store.py:43"); len(a.Breakpoints) != 1 {
		t.Errorf("breakpoints: %+v", a)
	}
	if a := c.must("pdb", `{"command":"c"}`, ""); a.Frame == nil || a.Frame.Function != "levels" {
		t.Errorf("frame: %+v", a)
	}
	c.must("pdb", `{"command":"p sorted(self._levels)"}`, "['bolt', 'nut']")
	if a := c.must("bash", `{"command":"exit 3"}`, ""); a.ExitCode == nil || *a.ExitCode != 3 {
		t.Errorf("exit code: %+v", a)
	}
	if a := c.must("view", `{"path":"nowhere.py"}`, "nowhere.py"); !a.IsError {
		t.Errorf("view of a missing file: %+v", a)
	}
	before := progress.Load()
	if c.testCancellation(&progress); progress.Load() == before {
		t.Error("there was no progress notification for a long call")
	}
	c.must("edit", badEdit, "")
	if a := c.must("env_grade", `{}`, "Not resolved (verified_fail)"); a.Resolved == nil || *a.Resolved {
		t.Errorf("grade of a wrong fix: %+v", a)
	}
	c.must("env_patch", `{}`, "+        return {}")
	c.must("env_reset", `{"soft":true}`, "The evening report")
	c.must("env_patch", `{}`, "return {}")
	c.must("env_reset", `{"soft":null}`, "The evening report")
	c.must("env_patch", `{}`, "Nothing has been changed.")
	c.must("edit", goldEdit, "")
	if a := c.must("eval", `{}`, "The tests pass."); a.EvalPassed == nil || !*a.EvalPassed {
		t.Errorf("eval: %+v", a)
	}
	if a := c.must("env_grade", `{}`, "Resolved (verified_pass)"); a.Resolved == nil || !*a.Resolved {
		t.Errorf("grade: %+v", a)
	}
	for _, wrong := range [][3]string{
		{"env_reset", `{"hard":true}`, `env_reset: wrong arguments: unknown field "hard", the only argument is soft`},
		{"env_reset", `{"soft":"yes"}`, `env_reset: wrong arguments: "soft" must be true or false, not a string`},
		{"env_patch", `{"x":1}`, `env_patch: wrong arguments: unknown field "x", it takes no arguments`},
		{"env_grade", `{"soft":true}`, "env_grade takes no arguments"},
	} {
		if text, a, err := c.call(t.Context(), wrong[0], wrong[1]); err != nil || a.OK || text != wrong[2] {
			t.Errorf("%s %s: %v, %+v, %q", wrong[0], wrong[1], err, a, text)
		}
	}
	if a := c.must("submit", `{}`, "Submitted"); !a.Terminated {
		t.Errorf("submit: %+v", a)
	}
	if err := c.session.Close(); err != nil || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("closing the session: %v, %v", err, cmd.ProcessState)
	}
}

// testCancellation checks that the program of a canceled call is killed and that the next call
// works.
func (c *mcpClient) testCancellation(progress *atomic.Int32) {
	c.t.Helper()
	c.must("bash", `{"command":"echo kept > /tmp/kept"}`, "")
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	before := progress.Load()
	go func() { // cancel after the first progress notification of the call, which the server sends every 2 s
		for n := 0; progress.Load() == before && n < 12000; n++ {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	if _, _, err := c.call(ctx, "bash", `{"command":"exec -a lingerer sleep 1000"}`); err == nil {
		c.t.Error("a canceled call was answered")
	}
	c.must("bash", `{"command":"cat /tmp/kept; pgrep -af lingerer || echo none"}`, "kept\nnone")
	ctx, cancel = context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	if _, _, err := c.call(ctx, "pdb", `{"command":"!__import__('time').sleep(1000)"}`); err == nil {
		c.t.Error("a canceled debugger command was answered")
	}
	c.must("pdb", `{"command":"b"}`, "store.py:43")
}

// The end of the input stops the running call and leaves nothing behind.
func TestEnvAsMCPServerEndsWithItsInput(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, in io.WriteCloser, out io.Closer){
		"input": func(_ *exec.Cmd, in io.WriteCloser, _ io.Closer) { _ = in.Close() },
		"reader": func(_ *exec.Cmd, in io.WriteCloser, out io.Closer) {
			_ = out.Close()
			_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`+"\n")
		},
		"kill": func(cmd *exec.Cmd, _ io.WriteCloser, _ io.Closer) { _ = cmd.Process.Kill() },
		"term": func(cmd *exec.Cmd, _ io.WriteCloser, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			mark := "linger" + strings.ReplaceAll(t.TempDir(), "/", "_")
			cmd := mcpCommand(t, "--task", "stockroom", "--timeout", "3600")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			send := func(line string) {
				if _, err := io.WriteString(in, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
			if !lines.Scan() || !strings.Contains(lines.Text(), `"protocolVersion":"2025-06-18"`) {
				t.Fatalf("%s", lines.Text())
			}
			send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bash","arguments":{"command":"exec -a ` + mark + ` sleep 1000"}}}`)
			wait(t, "the call runs", func() bool { return running(mark) })
			end(cmd, in, out)
			for lines.Scan() { // the rest of the output must also be JSON
				if !json.Valid(lines.Bytes()) {
					t.Errorf("on standard output: %s", lines.Text())
				}
			}
			_ = cmd.Wait()
			if want := map[string]int{"input": 0, "reader": 141, "kill": -1, "term": 143}[name]; cmd.ProcessState.ExitCode() != want {
				t.Errorf("exit code %d, want %d", cmd.ProcessState.ExitCode(), want)
			}
			wait(t, "nothing is left", func() bool { return !running(mark) })
		})
	}
}

// running reports whether there is a process whose command line begins with mark.
func running(mark string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(lines, func(file string) bool {
		raw, err := os.ReadFile(file)
		return err == nil && strings.HasPrefix(strings.ReplaceAll(string(raw), "\x00", " "), mark)
	})
}

// Over HTTP, each session has its own environment, which ends with the session.
func TestEnvListensForMCPClients(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "tracesmith", "env", "--mcp-listen", ":0", "--task", "stockroom")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	messages := bufio.NewScanner(stderr)
	if !messages.Scan() || !strings.HasPrefix(messages.Text(), "MCP server at http://127.0.0.1:") {
		t.Fatalf("standard error begins with %q", messages.Text())
	}
	url := strings.TrimPrefix(messages.Text(), "MCP server at ")
	dial := func() *mcpClient { return connect(t, &mcp.StreamableClientTransport{Endpoint: url}, nil) }
	a, b := dial(), dial()
	mark := "linger" + strings.ReplaceAll(t.TempDir(), "/", "_")
	a.must("bash", `{"command":"echo mine > new.txt; (exec -a `+mark+` sleep 1000) & echo started"}`, "started")
	b.must("bash", `{"command":"ls new.txt || echo none"}`, "none")
	a.must("env_patch", `{}`, "new.txt")
	b.must("env_patch", `{}`, "Nothing has been changed.")
	wait(t, "the background job runs", func() bool { return running(mark) })
	if err := a.session.Close(); err != nil {
		t.Error(err)
	}
	wait(t, "nothing is left", func() bool { return !running(mark) })
	b.must("bash", `{"command":"pwd"}`, "/testbed")

	for name, header := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if req.Header.Set(name, header); name == "Host" {
			req.Host = header
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %v, %v", name, header, resp, err)
		}
		_ = resp.Body.Close()
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for messages.Scan() {
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
	_ = b.session.Close()
}
