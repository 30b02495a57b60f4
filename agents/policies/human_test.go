package policies_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as G16 in the names of tests are rows of docs/internals/parity.md.

// fakeConsole is an agents.Console that enters lines and records what a person would see.
type fakeConsole struct {
	bytes.Buffer
	lines []string
}

func (p *fakeConsole) ReadLine(_ context.Context, prompt string, _ func(string) (int, []string)) (string, error) {
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	p.WriteString(prompt + line + "\n")
	return line, nil
}

var humanTools = []schemas.ToolSchema{{Name: "bash", Description: "Runs a command.", Parameters: json.RawMessage(`{"type":"object","required":["command"],"properties":{"command":{"type":"string"}}}`)}}

func enterLines(t *testing.T, steps []schemas.Step, lines ...string) (schemas.Reply, string) {
	t.Helper()
	p := &fakeConsole{lines: lines}
	h := build(t, "human", nil, agents.Deps{Console: p})
	reply, err := h.Next(t.Context(), &agents.Transcript{Tools: humanTools, Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return reply, p.String()
}

func TestG16HumanActs(t *testing.T) {
	steps := []schemas.Step{
		{Turn: -1, Source: "user", Text: "The counts are wrong."},
		{Turn: 0, Source: "agent", Observation: &schemas.Observation{Text: "no such file"}},
	}
	reply, seen := enterLines(t, steps, "? bash", "", "# the copy", "bash comand=x", "# is shallow", `bash command="ls -l"`)
	want := schemas.Reply{Message: "the copy\nis shallow", Calls: []schemas.ToolCall{{Name: "bash", Arguments: json.RawMessage(`{"command":"ls -l"}`)}}}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"The counts are wrong.", "no such file", "bash command=string\nRuns a command.", "> bash comand=x\n       ^ unknown argument"} {
		if !strings.Contains(seen, text) {
			t.Errorf("%q was not seen:\n%s", text, seen)
		}
	}
	if reply, _ := enterLines(t, nil); reply.Stop != schemas.ExitGaveUp {
		t.Errorf("the end of input does not end the episode: %+v", reply)
	}
}

// The turn ends after ten lines that are not valid calls. The reply's message holds the
// thoughts, which do not count, and the last invalid line.
func TestG16TenBadLines(t *testing.T) {
	lines := strings.Split(strings.Repeat("bash ls\n", 9)+"# hm\nwarp\nbash command=x", "\n")
	reply, seen := enterLines(t, nil, lines...)
	if len(reply.Calls) != 0 || reply.Message != "hm\nwarp" ||
		!strings.Contains(seen, "after 10 lines that are not valid calls") {
		t.Errorf("%+v\n%s", reply, seen)
	}
	if reply, _ := enterLines(t, nil, append(strings.Split(strings.Repeat("bash ls\n", 8)+"bash ls", "\n"), "bash command=x")...); len(reply.Calls) != 1 {
		t.Errorf("nine invalid lines ended the turn: %+v", reply)
	}
}
