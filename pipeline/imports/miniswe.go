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
}

// miniMessage is a chat message, or an element of the Responses API: a response with
// its items, or the output of a call.
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

// plain converts the message into a chat message.
func (m miniMessage) plain() (chatMessage, error) {
	out := m.chatMessage
	switch {
	case m.Type == "function_call_output":
		out.Role, out.ToolCallID, out.Content = "tool", m.CallID, m.Output
	case m.Object == "response":
		var items []miniItem
		if err := json.Unmarshal(m.Output, &items); err != nil {
			return out, fmt.Errorf("output is not a list of items")
		}
		var said, thought []string
		for _, x := range items {
			text, err := words(x.Content)
			why, werr := words(x.Summary)
			if err = cmp.Or(err, werr); err != nil {
				return out, err
			}
			switch x.Type {
			case "message":
				said = append(said, text)
			case "reasoning":
				thought = append(thought, strings.TrimSpace(why+"\n"+text))
			case "function_call":
				out.ToolCalls = append(out.ToolCalls, chatCall{cmp.Or(x.CallID, x.ID), chatFunction{x.Name, x.Arguments}})
			}
		}
		var err error
		if out.Content, err = json.Marshal(strings.Join(said, "\n")); err != nil {
			return out, err
		}
		if text := strings.TrimSpace(strings.Join(thought, "\n")); text != "" {
			out.Reasoning = &text
		}
		out.Role = "assistant"
	}
	return out, nil
}

// parseMiniSWE reads a .traj.json file (docs/usage/output_files.md of mini-swe-agent),
// or only its list of messages, as the first versions wrote it.
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
		return nil, fmt.Errorf("messages are missing: it is no mini-swe-agent trajectory")
	}
	r := &record{harness: "mini-swe-agent", instance: stem(name), version: f.Info.Version, config: f.Info.Config}
	f.Info.into(r)
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
		if messages[i], err = m.plain(); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	find(messages, cmp.Or(settings.Model.Regex, settings.Agent.Regex))
	b, problem, err := chat(messages, "messages")
	if err != nil {
		return nil, err
	}
	r.steps, r.problem, r.style = b.steps, problem, b.style
	return r, nil
}

// written matches a command in the text of a reply, in versions without tool calls.
var written = regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)\\s*\n(.*?)\n```|<mswea_bash_command>(.*?)</mswea_bash_command>")

// find fills in the commands of replies if the file has none, as the harness did: a
// reply without exactly one command had no effect. form is the configured regular
// expression, "" for the default.
func find(messages []chatMessage, form string) {
	if slices.ContainsFunc(messages, func(m chatMessage) bool { return len(m.ToolCalls)+len(m.Extra.Actions) > 0 }) {
		return
	}
	command := written
	if own, err := regexp.Compile("(?s)" + form); form != "" && err == nil && own.NumSubexp() == 1 {
		command = own
	}
	for i := range messages {
		m := &messages[i]
		text, err := words(m.Content)
		if found := command.FindAllStringSubmatch(text, -1); err == nil && m.Role == "assistant" && len(found) == 1 {
			m.Action = new(strings.TrimSpace(strings.Join(found[0][1:], "")))
		}
	}
}
