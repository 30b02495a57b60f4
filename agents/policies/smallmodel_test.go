package policies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// promptMessage is a message that the model server got, or that a test reads from the rows of an episode.
type promptMessage struct {
	Role       string       `json:"role"`
	Content    string       `json:"content"`
	ToolCalls  []promptCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type promptCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// smallModel is a model server with a small context. It counts prompts in its own way, refuses prompts
// that are too long, and calls tools. With answer number turns, it submits.
type smallModel struct {
	limit, turns int
	text         bool // writes its calls as text

	mu       sync.Mutex
	received [][]promptMessage // messages of the answered requests
	refused  int
}

func (s *smallModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role       string
			Content    *string
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []promptMessage
	count := 0
	for _, m := range body.Messages {
		message := promptMessage{Role: m.Role, ToolCallID: m.ToolCallID}
		if m.Content != nil {
			message.Content = *m.Content
		}
		for _, c := range m.ToolCalls {
			message.ToolCalls = append(message.ToolCalls, promptCall{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
		}
		list = append(list, message)
		count += 20 + len(message.Content)/3
	}
	w.Header().Set("Content-Type", "application/json")
	if count > s.limit {
		s.refused++
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"context_length_exceeded","message":"too long"}}`)
		return
	}
	s.received = append(s.received, list)
	n := len(s.received)
	call := func(i int, name, args string) string {
		text, _ := json.Marshal(args)
		return fmt.Sprintf(`{"id":"c%d_%d","type":"function","function":{"name":%q,"arguments":%s}}`, n, i, name, text)
	}
	calls := call(0, "view", fmt.Sprintf(`{ "path": "<é>%d.py" }`, n))
	switch {
	case n >= s.turns:
		calls = call(0, "submit", "")
	case n%4 == 0:
		calls += "," + call(1, "pdb", `{"command":"w"}`)
	case n%7 == 0:
		calls = ""
	}
	content := fmt.Sprintf("thought %d", n)
	if s.text {
		content, calls = textReply(n, s.turns), ""
	}
	quoted, _ := json.Marshal(content)
	fmt.Fprintf(w, `{"model":"m","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s,"reasoning":"hm","tool_calls":[%s]}}],"usage":{"prompt_tokens":%d,"completion_tokens":5}}`, quoted, calls, count)
}

// textReply returns a reply with its call as text. Some of these replies are malformed.
func textReply(n, turns int) string {
	switch {
	case n >= turns:
		return "<function=submit></function>"
	case n%5 == 0:
		return "<function=view>\n<parameter=path>m.py\n</function>"
	case n%7 == 0:
		return "No call."
	}
	return fmt.Sprintf("thought %d\n<function=view>\n<parameter=path>%d.py</parameter>\n</function>\n<function=eval></function>", n, n)
}
