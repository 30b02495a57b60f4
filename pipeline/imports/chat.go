package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// chatMessage is a message in OpenAI's format, with the additions of SWE-agent and
// mini-swe-agent.
type chatMessage struct {
	Role        string             `json:"role"`
	Content     json.RawMessage    `json:"content"`
	Reasoning   *string            `json:"reasoning_content"`
	Thinking    lenient[[]thought] `json:"thinking_blocks"`
	Demo        bool               `json:"is_demo"` // shown to the model, not written by it
	Action      *string            `json:"action"`
	ToolCallID  string             `json:"tool_call_id"`
	ToolCallIDs []string           `json:"tool_call_ids"`
	ToolCalls   []chatCall         `json:"tool_calls"`
	Failed      bool               `json:"-"` // the answer is an error message
	Extra       struct {
		Actions []struct {
			Command *string `json:"command"`
		} `json:"actions"`
		ReturnCode *int     `json:"returncode"`
		Timestamp  *float64 `json:"timestamp"`
		Cost       *float64 `json:"cost"`
		ExitStatus *string  `json:"exit_status"`
	} `json:"extra"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type thought struct {
	Text string `json:"thinking"`
}

// chat converts a list of messages into steps of b. problem is the text of the user messages before
// the first reply. where is the name of the list in errors.
func (b *builder) chat(list []chatMessage, where string) (problem string, err error) {
	for i, m := range list {
		text, err := contentText(m.Content)
		if err != nil {
			return "", fmt.Errorf("%s[%d]: %w", where, i, err)
		}
		at := unixTime(m.Extra.Timestamp)
		switch m.Role {
		case "assistant":
			b.reply(m.reply(b, text), at)
			b.named = slices.ContainsFunc(m.ToolCalls, func(c chatCall) bool { return c.ID != "" })
		case "system":
			b.say("system", text, at)
		case "user", "tool", "exit", "environment":
			if m.Extra.ExitStatus != nil && text == "" {
				continue // the final message, which has no text
			}
			if b.turn == 0 {
				problem = strings.TrimPrefix(problem+"\n\n"+text, "\n\n")
				b.say("user", text, at)
				continue
			}
			m.addAnswer(b, text)
		default:
			return "", fmt.Errorf("%s[%d]: role %q is not system, user, assistant or tool", where, i, m.Role)
		}
	}
	return problem, nil
}

// reply returns the message with its calls: its tool calls, or else the commands that the harness
// found in its text.
func (m *chatMessage) reply(b *builder, text string) schemas.Reply {
	r := schemas.Reply{Message: text, Reasoning: schemas.Value(m.Reasoning), CostUSD: m.Extra.Cost, Copied: m.Demo}
	for _, t := range m.Thinking.value {
		if m.Reasoning == nil {
			r.Reasoning = strings.TrimPrefix(r.Reasoning+"\n\n"+t.Text, "\n\n")
		}
	}
	for i, c := range m.ToolCalls {
		r.Calls = append(r.Calls, call(b.callID(c.ID, i), c.Function.Name, c.Function.Arguments))
	}
	if len(r.Calls) > 0 {
		b.style = native
		return r
	}
	if b.functions {
		for i, f := range functionsIn(text, b.tools) {
			r.Calls = append(r.Calls, call(b.callID("", i), f.name, f.arguments))
		}
		if len(r.Calls) > 0 {
			b.style = cmp.Or(b.style, inText)
			return r
		}
	}
	var commands []string
	for _, a := range m.Extra.Actions {
		if a.Command != nil {
			commands = append(commands, *a.Command)
		}
	}
	if len(commands) == 0 && schemas.Value(m.Action) != "" {
		commands = []string{*m.Action}
	}
	for i, command := range commands {
		switch {
		case !strings.Contains(text, strings.TrimSpace(command)):
			b.style = native
		case b.style == "":
			b.style = inText
		}
		args, err := schemas.CanonicalJSON(map[string]string{"command": command})
		if err == nil { // strings always encode
			r.Calls = append(r.Calls, call(b.callID("", i), "bash", args))
		}
	}
	return r
}

func (m *chatMessage) addAnswer(b *builder, text string) {
	id := m.ToolCallID
	if id == "" && len(m.ToolCallIDs) > 0 {
		id = m.ToolCallIDs[0]
	}
	var o *schemas.Observation
	if m.Role == "user" && id == "" && b.named { // the answer to a call with an ID would have that ID
		o = b.appendText(text)
	} else {
		o = b.answer(id, text)
	}
	if code := m.Extra.ReturnCode; o != nil && code != nil {
		setExitCode(o, *code)
	}
	if o != nil && m.Failed {
		o.IsError, o.ErrorClass = true, schemas.ErrUserError
	}
}

// setExitCode sets the exit code of an answer.
func setExitCode(o *schemas.Observation, code int) {
	if o.ExitCode = &code; code != 0 {
		o.IsError, o.ErrorClass = true, schemas.ErrNonzeroExit
	}
}

// unixTime converts a Unix time in seconds. It returns the zero time if s is nil or implausible.
func unixTime(s *float64) time.Time {
	if s == nil || math.IsNaN(*s) || *s <= 0 || *s > 1<<33 {
		return time.Time{}
	}
	return time.UnixMicro(int64(*s * 1e6)).UTC()
}
