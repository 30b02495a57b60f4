package viewer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// modelCallPage shows the messages that the reply of a step answers, and the bytes of the call if
// the place has them.
type modelCallPage struct {
	page
	Task, Back string
	Step       int32
	About      string
	Texts      string // address of the texts that can be saved
	Messages   []messageView
	Request    *block
	Attempts   []attemptView
}

// attemptView is one response to the request.
type attemptView struct {
	Title, Class string
	Last         bool
	Response     *block
}

type modelCallJSON struct {
	Schema   string         `json:"schema"`
	Messages []llms.Message `json:"messages"`
	Calls    []modelCall    `json:"calls"`
}

type modelCall struct {
	At       string `json:"at"`
	Status   int    `json:"status"`
	Failure  string `json:"failure"`
	Request  string `json:"request"`
	Response string `json:"response"`
}

// answersPrompt reports whether a row is the first one of a reply.
func answersPrompt(s *schemas.StepRow) bool {
	return s.Source == "agent" && s.TurnIndex != nil && schemas.Value(s.CallIndex) <= 0
}

// modelTitle returns what the page of a row shows.
func modelTitle(s *schemas.StepRow) string {
	if s.PromptSHA256 == nil {
		return "Prompt"
	}
	return "Model call"
}

// promptOf returns the row with this index and the messages that its reply answers. The row is nil if
// it begins no reply.
func promptOf(t sinks.Trajectory, step string) (*schemas.StepRow, []llms.Message, error) {
	n, err := strconv.Atoi(step)
	at := slices.IndexFunc(t.Steps, func(s schemas.StepRow) bool { return int(s.StepIndex) == n })
	if err != nil || at < 0 || !answersPrompt(&t.Steps[at]) {
		return nil, nil, fmt.Errorf("%w: step %q is not the beginning of a reply", errNotFound, step)
	}
	messages, err := history.Rebuild(t.Steps, at) // fails for imports whose rows are not in order
	return &t.Steps[at], messages, err
}

// callsOf returns the attempts at the model call of a row. Only a run on this machine has them.
func (p *place) callsOf(s *schemas.StepRow) ([]wire.Call, error) {
	if p.data.Dataset != nil || s.RequestSHA256 == nil {
		return nil, nil
	}
	return p.data.Calls(s.EpisodeID, func(sha string) bool { return sha == *s.RequestSHA256 })
}

func (s *Server) showModelCall(r *http.Request) (answer, error) {
	p, t, err := s.open(r)
	if err != nil {
		return answer{}, err
	}
	row, messages, unbuilt := promptOf(t, r.PathValue("step"))
	if row == nil {
		return answer{}, unbuilt
	}
	calls, err := p.callsOf(row)
	if err != nil {
		return answer{}, err
	}
	base := fmt.Sprintf("/t/%d/%s", p.number, t.Episode.EpisodeID)
	v := &modelCallPage{
		page: s.page(fmt.Sprintf("%s of step %d", modelTitle(row), row.StepIndex), "sample"), Task: visible(fmt.Sprintf("%s#%d", t.Episode.InstanceID, t.Episode.Attempt)), Back: base,
		Step: row.StepIndex, About: aboutPrompt(row, calls), Texts: fmt.Sprintf("%s/s/%d", base, row.StepIndex),
	}
	if unbuilt != nil {
		v.About = visible("The messages cannot be rebuilt from the episode: " + unbuilt.Error())
	}
	for _, m := range messages {
		v.Messages = append(v.Messages, promptMessage(m))
	}
	b := blocks{base: base}
	out := modelCallJSON{Schema: "tracesmith.model-call/1", Messages: messages, Calls: []modelCall{}}
	for i, c := range calls {
		v.Request = b.of(indented(c.Request), row.StepIndex, "request")
		attempt := attemptView{Title: fmt.Sprintf("status %d", c.Status), Class: "good", Last: i == len(calls)-1, Response: b.of(indented(c.Response), row.StepIndex, fmt.Sprintf("response-%d", i))}
		if c.Failure != "" {
			attempt.Title, attempt.Class = visible(strings.TrimPrefix(fmt.Sprintf("status %d, %s", c.Status, c.Failure), "status 0, ")), "bad"
		}
		v.Attempts = append(v.Attempts, attempt)
		out.Calls = append(out.Calls, modelCall{c.At.UTC().Format("2006-01-02T15:04:05.000Z"), c.Status, c.Failure, string(c.Request), string(c.Response)})
	}
	return answer{"modelcall", v, out}, nil
}

// aboutPrompt says how far a page shows what a model got and answered.
func aboutPrompt(s *schemas.StepRow, calls []wire.Call) string {
	if s.PromptSHA256 == nil {
		return "No model was called for this step. A model at this point of the conversation would get these messages."
	}
	text := "The messages that the model got; their SHA-256 hash is that of the recorded prompt. "
	if !schemas.Value(s.PromptRebuilds) {
		text = "The messages that the model got, which may differ from what was sent where the episode was redacted. "
	}
	switch {
	case len(calls) == 0:
		return text + "Requests and responses are only in the run directory on the machine of the run."
	case slices.ContainsFunc(calls, func(c wire.Call) bool { return schemas.HashBytes(c.Request) != c.RequestSHA256 }):
		return text + "The saved request is what was sent, with secrets replaced."
	}
	return text + "The saved request and responses are the exact bytes of the call."
}

func promptMessage(m llms.Message) messageView {
	text := m.Content
	for _, c := range m.ToolCalls {
		text += "\n" + c.Name + " " + string(c.Arguments)
	}
	return messageView{Role: visible(m.Role), Class: "context", Text: visible(strings.TrimPrefix(text, "\n"))}
}

// indented returns JSON with line breaks, and any other text as it is.
func indented(body []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, body, "", "  ") != nil {
		return string(body)
	}
	return out.String()
}

// modelText returns a text of a model call: its messages, or the exact bytes of its request or of a
// response.
func (p *place) modelText(t sinks.Trajectory, step, field string) (string, error) {
	row, messages, err := promptOf(t, step)
	if err != nil {
		return "", err
	}
	if field == "prompt" {
		raw, err := schemas.CanonicalJSON(messages)
		return string(raw), err
	}
	calls, err := p.callsOf(row)
	if err != nil {
		return "", err
	}
	for i, c := range calls {
		switch field {
		case "request":
			return string(c.Request), nil
		case fmt.Sprintf("response-%d", i):
			return string(c.Response), nil
		}
	}
	return "", fmt.Errorf("%w: step %s has no text %q", errNotFound, step, field)
}
