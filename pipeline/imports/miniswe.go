package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type miniSWEFile struct {
	Info     sweInfo       `json:"info"`
	Messages []miniMessage `json:"messages"`
	Format   string        `json:"trajectory_format"`
	Instance string        `json:"instance_id"`
}

// miniMessage is a chat message, or an object of the Responses API: a response with its items, or
// the output of a call.
type miniMessage struct {
	chatMessage
	Type   string          `json:"type"`
	Object string          `json:"object"`
	CallID string          `json:"call_id"`
	Output json.RawMessage `json:"output"`
}

type miniItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
}

// toChat converts the message into a chat message.
func (m miniMessage) toChat() (chatMessage, error) {
	out := m.chatMessage
	switch {
	case m.Type == "function_call_output":
		out.Role, out.ToolCallID, out.Content = "tool", m.CallID, m.Output
	case m.Object == "response":
		var items []miniItem
		if err := json.Unmarshal(m.Output, &items); err != nil {
			return out, fmt.Errorf("output is not a list of items")
		}
		var messages, reasoning []string
		for _, x := range items {
			text, err := contentText(x.Content)
			summary, summaryErr := contentText(x.Summary)
			if err = cmp.Or(err, summaryErr); err != nil {
				return out, err
			}
			switch x.Type {
			case "message":
				messages = append(messages, text)
			case "reasoning":
				reasoning = append(reasoning, strings.TrimSpace(summary+"\n"+text))
			case "function_call":
				out.ToolCalls = append(out.ToolCalls, chatCall{cmp.Or(x.CallID, x.ID), chatFunction{x.Name, x.Arguments}})
			}
		}
		var err error
		if out.Content, err = json.Marshal(strings.Join(messages, "\n")); err != nil {
			return out, err
		}
		if text := strings.TrimSpace(strings.Join(reasoning, "\n")); text != "" {
			out.Reasoning = &text
		}
		out.Role = "assistant"
	}
	return out, nil
}

// parseMiniSWE reads a .traj.json file (see docs/usage/output_files.md of mini-swe-agent), or only
// its list of messages, which the first versions wrote.
func parseMiniSWE(name string, raw []byte) (*record, error) {
	var f miniSWEFile
	var to any = &f
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		to = &f.Messages
	}
	if err := decode(raw, to); err != nil {
		return nil, err
	}
	if f.Messages == nil {
		return nil, fmt.Errorf("messages are missing: the file is not a mini-swe-agent trajectory")
	}
	r := &record{harness: "mini-swe-agent", instance: cmp.Or(f.Instance, stem(name)), version: f.Info.Version, config: f.Info.Config}
	f.Info.copyTo(r)
	var settings struct {
		AgentType string `json:"agent_type"`
		Agent     struct {
			Regex string `json:"action_regex"`
		} `json:"agent"`
		Model struct {
			Name  string `json:"model_name"`
			Regex string `json:"action_regex"`
		} `json:"model"`
	}
	if json.Unmarshal(f.Info.Config, &settings) == nil {
		r.model, r.agent = settings.Model.Name, settings.AgentType
	}
	messages := make([]chatMessage, len(f.Messages))
	for i, m := range f.Messages {
		var err error
		if messages[i], err = m.toChat(); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	findCommands(messages, cmp.Or(settings.Model.Regex, settings.Agent.Regex))
	b, err := &builder{seen: map[string]bool{}}, error(nil)
	if r.problem, err = b.chat(messages, "messages"); err != nil {
		return nil, err
	}
	r.steps, r.style = b.steps, b.style
	return r, nil
}

// commandInText matches a command in the text of a reply, for versions without tool calls.
var commandInText = regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)\\s*\n(.*?)\n```|<mswea_bash_command>(.*?)</mswea_bash_command>")

// findCommands fills in the commands of replies if no message of the file has a call. Like the
// harness, it ignores replies without exactly one command. pattern is the configured regular
// expression, or "" for the default.
func findCommands(messages []chatMessage, pattern string) {
	if slices.ContainsFunc(messages, func(m chatMessage) bool { return len(m.ToolCalls)+len(m.Extra.Actions) > 0 }) {
		return
	}
	command := commandInText
	if configured, err := regexp.Compile("(?s)" + pattern); pattern != "" && err == nil && configured.NumSubexp() == 1 {
		command = configured
	}
	for i := range messages {
		m := &messages[i]
		text, err := contentText(m.Content)
		if found := command.FindAllStringSubmatch(text, -1); err == nil && m.Role == "assistant" && len(found) == 1 {
			m.Action = new(strings.TrimSpace(strings.Join(found[0][1:], "")))
		}
	}
}
