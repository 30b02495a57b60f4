package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// shape describes a view whose rows hold conversations. The renderer does the work that
// these views share: it chooses the turns of a row, places reasoning and tools, counts
// problems for trainers in the notes, and determines which texts are trained on.
type shape struct {
	kind, summary string
	container     string
	options       supportedOptions
	loss          lossKind
	// row converts an example to the format of the view. If the trainer would refuse the row,
	// row returns a row without a value and counts the reason in the notes.
	row func(v *renderer, x example) (sinks.Row, error)
	// settings returns a pointer to the settings that only this view has, with their
	// defaults. It is nil for a view without settings.
	settings func() any
	// build applies the settings and adds methods that only this view has. It is nil if the
	// renderer is the whole view.
	build func(v *renderer, settings any) (sinks.View, error)
}

// lossKind is the way in which a trainer finds the text that it trains on in a row.
type lossKind int

const (
	lossOnCompletion lossKind = iota // a row is a prompt and a completion, and the loss is on the completion
	lossOnReplies                    // the loss is on every reply; see foldMasked
	lossByTrain                      // each message has a bool train
	lossByWeight                     // each reply has a weight of 0 or 1
)

// register adds the view of a shape to sinks.Views.
func register(s shape) {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: s.kind, Summary: s.summary, Default: s.settings,
		New: func(settings any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := s.options.check(o)
			if err != nil {
				return nil, err
			}
			v := &renderer{shape: s, opts: o}
			if s.build == nil {
				return v, nil
			}
			return s.build(v, settings)
		},
	})
}

// renderer is the View of a shape.
type renderer struct {
	shape
	opts     sinks.ViewOptions
	template *textTemplate       // nil unless the rows hold rendered text
	choose   func(*conversation) // sets turn.skip; nil if the view does not skip turns
}

func (v *renderer) Container() string { return v.container }

// example is one row before its conversion to the format of a view.
type example struct {
	trajectory         sinks.Trajectory
	conversation       *conversation
	span               span
	prompt, completion []message
	messages           []message // prompt, then completion
	tools              []tool
	notes              sinks.Notes
}

func (v *renderer) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := conversationsOf(t, v.opts, notes)
	if err != nil {
		return nil, notes, err
	}
	var rows []sinks.Row
	for _, c := range conversations {
		if v.choose != nil {
			v.choose(c)
		}
		for _, s := range spans(c, v.opts, v.loss, notes) {
			x := v.example(t, c, s, notes)
			row, err := v.row(v, x)
			if err != nil {
				return nil, notes, err
			}
			if row.Value == nil {
				continue
			}
			row.Texts = texts(x.messages, x.tools)
			v.setLoss(&row, x)
			rows = append(rows, row)
		}
	}
	return rows, notes, nil
}

func (v *renderer) example(t sinks.Trajectory, c *conversation, s span, notes sinks.Notes) example {
	x := example{trajectory: t, conversation: c, span: s, notes: notes}
	x.prompt, x.completion = c.messages(s, false)
	x.prompt, x.completion = placeReasoning(x.prompt, v.opts), placeReasoning(x.completion, v.opts)
	x.messages = slices.Concat(x.prompt, x.completion)
	lintMessages(x.messages, notes)
	x.tools = toolsOf(t, c.turns[:s.to])
	if v.loss == lossOnCompletion {
		x.tools = toolsOf(t, c.turns[s.from:s.to])
		if slices.ContainsFunc(x.completion, func(m message) bool { return m.Role != "assistant" }) {
			notes["rows_that_need_assistant_only_loss"]++
		}
	}
	return x
}

// setLoss sets the texts of a row that are trained on, and the replies that must not be.
func (v *renderer) setLoss(row *sinks.Row, x example) {
	masked := func(turn int) bool { return x.conversation.turns[turn].masked(v.opts) }
	if v.loss == lossOnCompletion {
		row.Trained = texts(x.completion, nil) // including answers of tools
		row.Masked = replies(x.prompt, masked)
		return
	}
	trained := func(turn int) bool { return x.span.train[turn] }
	if v.loss == lossOnReplies && v.opts.Mask != sinks.MaskSplitRows {
		trained = func(turn int) bool { return v.opts.Mask != sinks.MaskContext || !masked(turn) }
	}
	row.Trained = replies(x.messages, trained)
	row.Masked = replies(x.messages, func(turn int) bool { return !trained(turn) && masked(turn) })
}

// wire returns messages of a row for JSON lines, with the field train or weight if the loss needs it.
func (v *renderer) wire(x example, list []message) []wireMessage {
	out := wireMessages(list, v.opts)
	for i, m := range list {
		trained := x.span.train[m.turn]
		switch {
		case v.loss == lossByTrain:
			out[i].Train = &trained
		case v.loss == lossByWeight && m.Role == "assistant":
			out[i].Weight = new(0)
			if trained {
				out[i].Weight = new(1)
			}
		}
	}
	return out
}

// toolValues returns the tools of a row in the form that the options choose, and as JSON text.
func (v *renderer) toolValues(x example) (value any, asText string, err error) {
	if value, err = toolsValue(x.tools, v.opts); err != nil {
		return nil, "", err
	}
	asText, err = jsonText(x.tools)
	return value, asText, err
}

// thinking returns the value of enable_thinking, which tells a chat template whether to
// render reasoning, or nil if the options do not name a template. position is the value of
// the option thinking with which the template can read the reasoning.
func (v *renderer) thinking(x example, position string) *bool {
	if v.opts.ChatTemplate == "" {
		return nil
	}
	return new(v.opts.Thinking == position && x.conversation.hasReasoning())
}

// origin identifies the episode that a row comes from.
type origin struct {
	EpisodeID  string `json:"episode_id" parquet:"episode_id"`
	InstanceID string `json:"instance_id" parquet:"instance_id"`
	Repo       string `json:"repo" parquet:"repo"`
	Split      string `json:"split" parquet:"split"`
	Resolved   *bool  `json:"resolved,omitempty" parquet:"resolved,optional"`
}

func originOf(e schemas.EpisodeRow) origin {
	return origin{e.EpisodeID, e.InstanceID, e.Repo, e.Split, e.Resolved}
}
