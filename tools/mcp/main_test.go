package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// The test binary is also the MCP server under test: "serve KIND" runs a server of that kind.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// serve runs a server until its input ends.
func serve(kind string, args []string) {
	switch kind {
	case "silent": // reads everything, answers nothing
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // does not read, and ignores the end of its input
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("Hello! I am a friendly server.")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stops":
		fmt.Fprintln(os.Stderr, "cannot open /etc/shadow")
		os.Exit(3)
	case "deep":
		fmt.Println(strings.Repeat("[", 5_000_000))
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "old": // an unknown protocol version
		answerAll(func(string) string {
			return `{"protocolVersion":"1999-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		})
	case "endless": // a list whose pages never end
		page := 0
		answerAll(func(method string) string {
			switch method {
			case "initialize":
				return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
			case "tools/list":
				page++
				return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"p%d"}`, page, page)
			}
			return "{}"
		})
	case "many", "twins", "twice", "mixed":
		answerAll(func(method string) string {
			if method == "initialize" {
				return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
			}
			return `{"tools":[` + offers(kind) + `]}`
		})
	case "child": // a well-behaved server with a descendant that is not
		sleeper := exec.Command("sleep", "1000")
		if err := sleeper.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(args[0], fmt.Append(nil, sleeper.Process.Pid), 0o600); err != nil {
			panic(err)
		}
		fallthrough
	default:
		if err := newServer(args).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// offers returns a list of tools that a well-behaved server would not send.
func offers(kind string) string {
	tool := func(name, schema string) string { return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema) }
	const object = `{"type":"object"}`
	var out []string
	switch kind {
	case "many":
		for i := range 10_000 {
			out = append(out, tool(fmt.Sprintf("t%d", i), object))
		}
	case "twins":
		out = []string{tool("a.b", object), tool("a_b", object)}
	case "twice":
		out = []string{tool("same", object), tool("same", object)}
	case "mixed":
		out = []string{
			tool("good", object), `{"name":"\u001b]0;x\u0007bad","inputSchema":{"type":"string"}}`, tool("", object), "null",
			tool("remote", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1/s.json"}}}`),
		}
	}
	return strings.Join(out, ",")
}

// answerAll answers every request with the JSON text that result returns. It answers
// server/discover with an error, like servers that do not know this method.
func answerAll(result func(method string) string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || req.ID == nil {
			continue
		}
		if req.Method == "server/discover" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", req.ID)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result(req.Method))
	}
}

// newServer returns a server that the SDK implements, with a tool for each behavior that the tests need. args[1], if given, is a
// file to which each execution adds a line.
func newServer(args []string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	note := func(what string) {
		if len(args) < 2 {
			return
		}
		f, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Fprintln(f, what)
	}
	add := func(name, schema string, run func(ctx context.Context, req *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "What " + name + " does.", InputSchema: json.RawMessage(schema)},
			func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				note(name)
				var in map[string]any
				_ = json.Unmarshal(req.Params.Arguments, &in)
				return run(ctx, req, in)
			})
	}
	const open = `{"type":"object"}`
	add("add", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"unit":{"type":"string","enum":["m","s"]}},"required":["a","b"]}`,
		func(_ context.Context, _ *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, error) {
			return text(fmt.Sprintf("%v", in["a"].(float64)+in["b"].(float64))), nil
		})
	add("parts", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{Data: make([]byte, 1234), MIMEType: "image/png"}, &sdk.TextContent{Text: "two\x1b[31m"},
			&sdk.AudioContent{Data: []byte("la"), MIMEType: "audio/wav"}, &sdk.ResourceLink{URI: "file:///x"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://a", MIMEType: "text/plain", Text: "inside"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://b", MIMEType: "application/zip", Blob: []byte("zip")}},
		}}, nil
	})
	add("structured", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"answer": 42}}, nil
	})
	add("empty", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{}, nil
	})
	add("fails", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such issue"}}}, nil
	})
	add("refuses", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("not allowed")
	})
	add("big", `{"type":"object","properties":{"bytes":{"type":"integer"}}}`, func(_ context.Context, _ *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("0123456789abcde\n", int(in["bytes"].(float64))/16)), nil
	})
	add("hang", open, func(ctx context.Context, _ *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		note("hang was cancelled")
		return nil, ctx.Err()
	})
	add("die", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		os.Exit(1)
		return nil, nil
	})
	count := 0
	add("count", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		count++
		return text(fmt.Sprint(count)), nil
	})
	add("change", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		s.RemoveTools("add")
		time.Sleep(20 * time.Millisecond) // the SDK batches changes before it notifies the client
		return text("changed"), nil
	})
	add("environment", open, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	return s
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}
