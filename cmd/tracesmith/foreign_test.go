package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const openAIScript = `
key: k
models: [m]
expect: {tools: [view, grep], echo: true}
sessions:
  - session: s1
    turns:
      - content: "Grüße, and more text"
        tool_calls: [{name: view, arguments: {path: a/long/path/of/a/file.py}}, {name: grep, arguments: {pattern: ü}}]
        usage: {prompt: 12, completion: 5, cached: 4}
        faults: [{kind: unavailable, headers: {Retry-After-Ms: "1"}, times: 1}, {kind: rate_limit_ms, times: 1}]
      - {content: '{{.Last}} at {{capture "line (\\d+)" (index .Messages 2).Text}}', template: true}
`

// The official OpenAI client works with the mock server: it lists models, retries, and handles
// parallel tool calls and a second turn.
func TestForeignClientOfTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(openAIScript), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("tracesmith", "mock", file, "--strict")
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	c := openai.NewClient(option.WithBaseURL(strings.TrimSpace(url)), option.WithAPIKey("k"), option.WithHeader("X-Session-ID", "s1"))
	if models, err := c.Models.List(t.Context()); err != nil || len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Fatalf("%v: %+v", err, models)
	}
	tool := func(name string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: name, Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{}}})
	}
	ask := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("go")},
		Tools: []openai.ChatCompletionToolUnionParam{tool("view"), tool("grep")}}
	first, err := c.Chat.Completions.New(t.Context(), ask)
	if err != nil || len(first.Choices) != 1 || first.Usage.PromptTokens != 12 || first.Usage.PromptTokensDetails.CachedTokens != 4 {
		t.Fatalf("%v: %+v", err, first)
	}
	m := first.Choices[0].Message
	if m.Content != "Grüße, and more text" || len(m.ToolCalls) != 2 || m.ToolCalls[0].Function.Arguments != `{"path":"a/long/path/of/a/file.py"}` || m.ToolCalls[1].Function.Arguments != `{"pattern":"ü"}` {
		t.Errorf("%+v", m)
	}
	ask.Messages = append(ask.Messages, m.ToParam(), openai.ToolMessage("stopped in line 42", m.ToolCalls[0].ID), openai.ToolMessage("found", m.ToolCalls[1].ID))
	if second, err := c.Chat.Completions.New(t.Context(), ask); err != nil || second.Choices[0].Message.Content != "found at 42" {
		t.Errorf("%v: %+v", err, second)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), "4 requests, 2 answered, 12 prompt and 5 completion tokens") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
