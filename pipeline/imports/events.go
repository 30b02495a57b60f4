package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// event is an event of OpenHands: an action or an observation of versions before 1.0 (see
// openhands/events/serialization/event.py), or an event with a kind (see openhands/sdk/event of its
// SDK). In the first form action and observation are names, in the second objects.
type event struct {
	ID          json.RawMessage       `json:"id"`
	Cause       json.RawMessage       `json:"cause"`
	Kind        lenient[string]       `json:"kind"`
	Source      lenient[string]       `json:"source"`
	Timestamp   lenient[string]       `json:"timestamp"`
	Action      json.RawMessage       `json:"action"`
	Observation json.RawMessage       `json:"observation"`
	Args        lenient[eventArgs]    `json:"args"`
	Content     json.RawMessage       `json:"content"`
	Extras      lenient[eventResult]  `json:"extras"`
	Call        lenient[callMetadata] `json:"tool_call_metadata"`

	Thought      json.RawMessage                `json:"thought"`
	Reasoning    lenient[*string]               `json:"reasoning_content"`
	Thinking     lenient[[]thought]             `json:"thinking_blocks"`
	ToolName     lenient[string]                `json:"tool_name"`
	ToolCallID   lenient[string]                `json:"tool_call_id"`
	ToolCall     lenient[*rowCall]              `json:"tool_call"`
	ResponseID   lenient[string]                `json:"llm_response_id"`
	SystemPrompt lenient[struct{ Text string }] `json:"system_prompt"`
	Tools        lenient[[]json.RawMessage]     `json:"tools"`
	Message      lenient[rowMessage]            `json:"llm_message"`
	Error        lenient[string]                `json:"error"`
}

type eventArgs map[string]json.RawMessage

// eventResult holds what an observation says about the end of a command.
type eventResult struct {
	ExitCode *int `json:"exit_code"`
	Metadata lenient[struct {
		ExitCode *int `json:"exit_code"`
	}] `json:"metadata"`
	Content json.RawMessage `json:"content"`
	Output  lenient[string] `json:"output"`
	IsError lenient[bool]   `json:"is_error"`
}

func (r eventResult) exitCode() *int { return cmp.Or(r.Metadata.value.ExitCode, r.ExitCode) }

// callMetadata links an action or observation to the call of the model's response.
type callMetadata struct {
	Name     string `json:"function_name"`
	ID       string `json:"tool_call_id"`
	Response lenient[struct {
		ID      lenient[string] `json:"id"`
		Choices []struct {
			Message rowMessage `json:"message"`
		} `json:"choices"`
	}] `json:"model_response"`
}

// actionTools are the names of the tools that create an action, for events without
// tool_call_metadata. Source: codeact_agent/function_calling.py of OpenHands.
var actionTools = map[string]string{"run": "execute_bash", "run_ipython": "execute_ipython_cell", "browse_interactive": "browser"}

// harnessArgs are arguments of actions that the harness adds to those of the call.
var harnessArgs = []string{
	"thought", "confirmation_state", "security_risk", "hidden", "blocking", "keep_prompt", "is_static", "cwd", "impl_source",
	"translated_ipython_code", "include_extra", "return_axtree", "wait_for_response", "browsergym_send_msg_to_user", "kernel_init_code",
}

// unseen are actions and observations that belong to the harness and that the model does not see as
// such.
var unseen = []string{
	"", "null", "recall", "agent_state_changed", "change_agent_state", "condensation", "condensation_request", "start", "pause", "resume", "stop",
}

// stream collects the messages of an event stream.
type stream struct {
	messages []chatMessage
	tools    []json.RawMessage
	replies  map[string]int // index of the message with the calls of a response
}

// eventMessages converts the events of OpenHands into messages. Its first versions wrote pairs of an
// action and its observation.
func eventMessages(list []json.RawMessage, where string) ([]chatMessage, []json.RawMessage, error) {
	s := stream{replies: map[string]int{}}
	for i, raw := range list {
		parts := []json.RawMessage{raw}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			if err := json.Unmarshal(raw, &parts); err != nil {
				return nil, nil, fmt.Errorf("%s[%d] is not a pair of events: %w", where, i, err)
			}
		}
		for _, part := range parts {
			var e event
			if err := json.Unmarshal(unquoted(part), &e); err != nil {
				return nil, nil, fmt.Errorf("%s[%d] is neither a message nor an event: %w", where, i, err)
			}
			if e.Kind.value == "" && e.Action == nil && e.Observation == nil {
				return nil, nil, fmt.Errorf("%s[%d] has no role, action, observation or kind: it is neither a message nor an event", where, i)
			}
			if err := s.add(e); err != nil {
				return nil, nil, fmt.Errorf("%s[%d]: %w", where, i, err)
			}
		}
	}
	return s.messages, s.tools, nil
}

func (s *stream) add(e event) error {
	switch {
	case e.Kind.value != "":
		return s.addKind(e)
	case e.Action != nil:
		return s.addAction(e)
	}
	return s.addObservation(e)
}

// addAction adds an action of the versions before 1.0.
func (s *stream) addAction(e event) error {
	var name string
	if err := json.Unmarshal(e.Action, &name); err != nil {
		return fmt.Errorf("action is not a name")
	}
	args := e.Args.value
	switch source := e.Source.value; {
	case name == "system":
		s.say(e, "system", args["content"])
		var tools lenient[[]json.RawMessage]
		if json.Unmarshal(args["tools"], &tools) == nil {
			s.tools = tools.value
		}
		return nil
	case name == "message" && source != "agent":
		s.say(e, "user", args["content"])
		return nil
	case slices.Contains(unseen, name) || source == "user": // a command that a user ran
		return nil
	case name == "message":
		s.reply(e, "", chatMessage{Content: args["content"]}, nil)
		return nil
	}
	reply := chatMessage{Content: thoughtOf(args["thought"])}
	call := chatCall{ID: eventCallID(e.ID), Function: chatFunction{Name: cmp.Or(actionTools[name], name), Arguments: ownArguments(args)}}
	meta := e.Call.value
	if meta.Name != "" {
		call.ID, call.Function.Name = cmp.Or(meta.ID, call.ID), meta.Name
	}
	if choices := meta.Response.value.Choices; len(choices) > 0 {
		said := choices[0].Message.toChat()
		for _, c := range said.ToolCalls {
			if c.ID == meta.ID {
				call = c
			}
		}
		said.ToolCalls = nil
		reply = said
	}
	s.reply(e, meta.Response.value.ID.value, reply, &call)
	return nil
}

// addObservation adds an observation of the versions before 1.0.
func (s *stream) addObservation(e event) error {
	var name string
	if err := json.Unmarshal(e.Observation, &name); err != nil {
		return fmt.Errorf("observation is not a name")
	}
	if slices.Contains(unseen, name) {
		return nil
	}
	s.answer(e, cmp.Or(e.Call.value.ID, eventCallID(e.Cause)), e.Content, e.Extras.value.exitCode(), name == "error")
	return nil
}

// addKind adds an event of the SDK. It skips kinds that the model does not see.
func (s *stream) addKind(e event) error {
	switch e.Kind.value {
	case "SystemPromptEvent":
		s.say(e, "system", quoted(e.SystemPrompt.value.Text))
		s.tools = e.Tools.value
	case "MessageEvent":
		m := e.Message.value.toChat()
		if m.Role != "assistant" {
			s.say(e, cmp.Or(m.Role, "user"), m.Content)
			return nil
		}
		s.reply(e, "", m, nil)
	case "ActionEvent":
		var args lenient[eventArgs]
		if e.Action != nil {
			_ = args.UnmarshalJSON(e.Action) // never fails
		}
		call := chatCall{Function: chatFunction{Arguments: ownArguments(args.value)}}
		if e.ToolCall.value != nil {
			call = e.ToolCall.value.toChat()
		}
		call.ID, call.Function.Name = cmp.Or(e.ToolCallID.value, call.ID), cmp.Or(e.ToolName.value, call.Function.Name)
		s.reply(e, e.ResponseID.value, chatMessage{Content: e.Thought, Reasoning: e.Reasoning.value, Thinking: e.Thinking}, &call)
	case "ObservationEvent":
		var result lenient[eventResult]
		if e.Observation != nil {
			_ = result.UnmarshalJSON(e.Observation) // never fails
		}
		content := result.value.Content
		if text, err := contentText(content); err == nil && text == "" {
			content = quoted(result.value.Output.value)
		}
		s.answer(e, e.ToolCallID.value, content, result.value.exitCode(), result.value.IsError.value)
	case "AgentErrorEvent":
		s.answer(e, e.ToolCallID.value, quoted(e.Error.value), nil, true)
	}
	return nil
}

// say adds a message of the system or the user.
func (s *stream) say(e event, role string, content json.RawMessage) {
	s.push(e, chatMessage{Role: role, Content: content})
}

// reply adds a call to the reply with the given response ID, or starts a reply.
func (s *stream) reply(e event, response string, m chatMessage, call *chatCall) {
	at, known := s.replies[response]
	if !known {
		m.Role = "assistant"
		at = s.push(e, m)
		if response != "" {
			s.replies[response] = at
		}
	}
	if call != nil {
		s.messages[at].ToolCalls = append(s.messages[at].ToolCalls, *call)
	}
}

// answer adds the result of a call.
func (s *stream) answer(e event, id string, content json.RawMessage, exitCode *int, failed bool) {
	m := chatMessage{Role: "tool", ToolCallID: id, Content: content, Failed: failed}
	m.Extra.ReturnCode = exitCode
	s.push(e, m)
}

func (s *stream) push(e event, m chatMessage) int {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999"} {
		if at, err := time.Parse(form, e.Timestamp.value); err == nil {
			m.Extra.Timestamp = new(float64(at.UnixMicro()) / 1e6)
			break
		}
	}
	s.messages = append(s.messages, m)
	return len(s.messages) - 1
}

// eventCallID returns the ID of the call of an event without tool_call_metadata, or "" if the event
// has no ID.
func eventCallID(id json.RawMessage) string {
	text := strings.Trim(string(id), `" `)
	if text == "" || text == "null" {
		return ""
	}
	return "event_" + text
}

// thoughtOf returns the text of an action's thought, which is a text or an object.
func thoughtOf(raw json.RawMessage) json.RawMessage {
	var object struct {
		Text string `json:"text"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &object) == nil {
		return quoted(object.Text)
	}
	return raw
}

// ownArguments returns the arguments of an action without null and without those of the harness.
func ownArguments(args eventArgs) json.RawMessage {
	args = maps.Clone(args)
	maps.DeleteFunc(args, func(name string, value json.RawMessage) bool {
		return name == "kind" || string(value) == "null" || slices.Contains(harnessArgs, name)
	})
	raw, err := schemas.CanonicalJSON(args)
	if err != nil || args == nil { // valid JSON always encodes
		return nil
	}
	return raw
}

// quoted returns a text as JSON.
func quoted(text string) json.RawMessage {
	raw, err := schemas.CanonicalJSON(text)
	if err != nil { // strings always encode
		return nil
	}
	return raw
}
