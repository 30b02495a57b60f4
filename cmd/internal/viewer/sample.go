package viewer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// sampleView is the view whose messages say whether they are trained on.
const sampleView = "sft-axolotl"

// samplePage is the training sample of an episode, as the template shows it.
type samplePage struct {
	page
	Task, Back     string
	Gold           bool // steps of the gold patch are part of the sample
	Other          string
	Rows           []sampleRow
	Notes          []param // what the view changed or left out
	Error          string
	View           string
	Trained, Shown int    // bytes of text
	Share          string // of Trained in Shown
}

type sampleRow struct {
	Phase    string
	Messages []messageView
}

// messageView is a message with all the text that a model reads of it. Class says whether the
// model is trained on it.
type messageView struct{ Role, Class, Label, Text string }

// sampleMessage is a message as the view writes it.
type sampleMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Train     bool   `json:"train"`
	Calls     []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (m sampleMessage) view() messageView {
	text := m.Content
	if m.Reasoning != "" {
		text = "<think>\n" + m.Reasoning + "\n</think>\n" + text
	}
	for _, c := range m.Calls {
		text += "\n" + c.Function.Name + " " + c.Function.Arguments
	}
	v := messageView{Role: visible(m.Role), Class: "context", Label: "context", Text: visible(text)}
	switch {
	case m.Train:
		v.Class, v.Label = "trained", "trained on"
	case m.Role == "assistant":
		v.Class, v.Label = "masked", "masked"
	}
	return v
}

func (s *Server) showSample(r *http.Request) (answer, error) {
	p, t, err := s.open(r)
	if err != nil {
		return answer{}, err
	}
	base := fmt.Sprintf("/t/%d/%s", p.number, t.Episode.EpisodeID)
	other := r.URL.Query()
	v := &samplePage{
		page: s.page("Training sample", "sample"), Task: visible(fmt.Sprintf("%s#%d", t.Episode.InstanceID, t.Episode.Attempt)),
		Back: base + listOf(r), Gold: other.Get("gold") != "", View: sampleView,
	}
	if other.Set("gold", "1"); v.Gold {
		other.Del("gold")
	}
	v.Other = base + "/sample?" + other.Encode()
	rows, err := v.render(t)
	if err != nil {
		v.Error = visible(err.Error())
	}
	return answer{"sample", v, map[string]any{"schema": "tracesmith.sample/1", "view": sampleView, "rows": rows}}, nil
}

// render fills in the rows that the export of the view would write.
func (v *samplePage) render(t sinks.Trajectory) ([]any, error) {
	view, err := sinks.Views.Build(sampleView, nil, sinks.ViewOptions{AllowGold: v.Gold})
	if err != nil {
		return nil, err
	}
	rows, notes, err := view.Render(t)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(notes) {
		v.Notes = append(v.Notes, param{name, fmt.Sprint(notes[name])})
	}
	var values []any
	for _, row := range rows {
		raw, err := schemas.CanonicalJSON(row.Value)
		if err != nil {
			return nil, err
		}
		var read struct {
			Phase    string          `json:"phase"`
			Messages []sampleMessage `json:"messages"`
		}
		if err := json.Unmarshal(raw, &read); err != nil {
			return nil, fmt.Errorf("reading a row of %s: %w", sampleView, err)
		}
		out := sampleRow{Phase: read.Phase}
		for _, m := range read.Messages {
			message := m.view()
			v.Shown += len(message.Text)
			if m.Train {
				v.Trained += len(message.Text)
			}
			out.Messages = append(out.Messages, message)
		}
		v.Rows, values = append(v.Rows, out), append(values, row.Value)
	}
	v.Share = fmt.Sprintf("%s of %s of text", bytesText(v.Trained), bytesText(v.Shown))
	if len(rows) == 0 {
		return nil, errors.New("the view leaves this episode out: the notes below say why")
	}
	return values, nil
}
