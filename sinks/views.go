package sinks

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
)

// Trajectory is one episode with its steps, in order, and the tools that its agent had.
type Trajectory struct {
	Episode schemas.EpisodeRow
	Steps   []schemas.StepRow
	Tools   []schemas.ToolSchema // all tools of the episode
	// ToolSets maps StepRow.ToolSetSHA256 to the tools that the model saw in a turn, if
	// they differ from Tools.
	ToolSets map[string][]schemas.ToolSchema
	// Annotations holds the annotations of the episode, if the dataset has any.
	Annotations []schemas.AnnotationRow
}

// Trajectory returns the episode in the form that views render.
func (s Staged) Trajectory() Trajectory {
	t := Trajectory{Episode: s.Episode, Steps: s.Steps, Tools: s.Tools}
	for _, set := range s.ToolSets {
		t.AddToolSet(schemas.Hash(set), set)
	}
	return t
}

// AddToolSet adds a list of tools that the model saw in a turn, unless it is the list of the
// whole episode.
func (t *Trajectory) AddToolSet(sha string, tools []schemas.ToolSchema) {
	if whole := t.Episode.ToolSetSHA256; whole != nil && *whole == sha {
		return
	}
	if t.ToolSets == nil {
		t.ToolSets = map[string][]schemas.ToolSchema{}
	}
	t.ToolSets[sha] = tools
}

// ToolsAt returns the tools that the model saw in the turn of a step row.
func (t Trajectory) ToolsAt(s *schemas.StepRow) []schemas.ToolSchema {
	if s.ToolSetSHA256 != nil {
		if tools, ok := t.ToolSets[*s.ToolSetSHA256]; ok {
			return tools
		}
	}
	return t.Tools
}

// The containers in which the rows of a view can be written.
const (
	JSONL   = "jsonl"
	JSONLGz = "jsonl.gz"
	JSONLZs = "jsonl.zst"
	Parquet = "parquet"
	Dir     = "dir" // a directory with a file per episode
)

// Containers lists the values that -o and --container accept, in the order in which
// the help prints them. Only a view itself can choose Dir.
var Containers = []string{JSONL, JSONLGz, JSONLZs, Parquet}

// Row is one output of a view.
type Row struct {
	// Value is encoded as one line of canonical JSON.
	Value any
	// Columns is the row as a struct with parquet tags. It is nil if the view does not
	// have a Parquet form.
	Columns any
	// Texts holds the parts of the row that a model reads, for counting tokens.
	Texts []string
	// Trained holds the Texts that the trainer's default loss covers. Masked holds the
	// agent's Texts that the row shows but that must not be trained on. All other Texts are
	// context.
	Trained, Masked []string
	// File and Body are set by views whose container is Dir: the slash-separated name
	// of a file below the output, and its content.
	File string
	Body []byte
	// Episodes holds the ids of the episodes from which Finish made the row.
	Episodes []string
	// Origin says where the row comes from, if its format does not have a place for that.
	// It is encoded as canonical JSON, one line per row, in a file next to the output.
	Origin any
}

// View renders episodes for a trainer. Render is called once per episode, in
// order, from one goroutine.
type View interface {
	// Container returns the default container of the output.
	Container() string
	// Render returns the rows of one episode, or none if the view omits it. An error
	// means that the data of the episode is inconsistent.
	Render(Trajectory) ([]Row, Notes, error)
}

// Finisher is a View that has rows made from more than one episode, or that reports
// missing data. Finish is called once, after the last Render.
type Finisher interface {
	Finish() ([]Row, Notes, error)
}

// Sidecar is a View whose output needs a second file. Sidecar takes the name of the
// output and returns the suffix to append to it and the content of the second file.
type Sidecar interface {
	Sidecar(name string) (suffix string, body []byte, err error)
}

// TokenLimiter is a View whose trainer by default truncates rows that have more than a
// number of tokens. remedy says which setting of the trainer prevents this.
type TokenLimiter interface {
	TokenLimit() (tokens int, remedy string)
}

// MissingError means that a view has no rows because the selected episodes lack data
// that the view needs.
type MissingError struct{ What, Remedy string }

func (e *MissingError) Error() string { return e.What + ": " + e.Remedy }

// Notes counts, by a short name, what a view had to change or omit. The lint report of an
// export contains the sums. Names that begin with rows_dropped or turns_cut stand for
// content that no row contains.
type Notes map[string]int

// Add adds other notes.
func (n Notes) Add(more Notes) {
	for k, v := range more {
		n[k] += v
	}
}

// ViewOptions are the options that views share. A view refuses options that it does
// not support; "" is the view's own default.
type ViewOptions struct {
	// Mask determines how a view renders turns that must not be trained on.
	Mask string `json:"mask,omitempty"`
	// AllowGold includes steps that come from the gold patch and trains on them.
	// Without it, every view ends a row before the first such step.
	AllowGold bool `json:"allow_gold"`
	// Phase selects one conversation of episodes that have more than one; "" = all
	// conversations, in separate rows.
	Phase string `json:"phase,omitempty"`
	// Arguments of calls: object or string.
	Arguments string `json:"arguments,omitempty"`
	// Thinking: field, inline (in front of the reply's text, in <think> tags) or drop.
	Thinking string `json:"thinking,omitempty"`
	// ChatTemplate names the chat template that the rows are for. Views write
	// enable_thinking only if it is set.
	ChatTemplate string `json:"chat_template,omitempty"`
	// Tools: list or json-string.
	Tools string `json:"tools,omitempty"`
	// ContentNull is the content of a reply that has only calls: empty (""), or omit
	// to leave out the key.
	ContentNull string `json:"content_null,omitempty"`
	// System: keep, drop, or replace with SystemText.
	System     string `json:"system,omitempty"`
	SystemText string `json:"-"`
	// Trim: none, or after-resolved to omit the turns after the one that resolved the
	// task.
	Trim string `json:"trim,omitempty"`
	// Count counts the tokens of a text; nil if no tokenizer is available.
	Count func(string) int `json:"-"`
}

// Values of the options.
const (
	ArgumentsObject = "object"
	ArgumentsString = "string"
	ThinkingField   = "field"
	ThinkingInline  = "inline"
	ThinkingDrop    = "drop"
	ToolsList       = "list"
	ToolsJSON       = "json-string"
	ContentEmpty    = "empty"
	ContentOmit     = "omit"
	SystemKeep      = "keep"
	SystemDrop      = "drop"
	SystemReplace   = "replace"
	TrimNone        = "none"
	TrimResolved    = "after-resolved"
)

// Values of ViewOptions.Mask.
const (
	MaskContext     = "context"      // masked turns are shown but not trained on
	MaskCut         = "cut"          // a conversation ends before its first masked turn
	MaskNone        = "none"         // masked turns are trained on
	MaskDropEpisode = "drop-episode" // an episode, or phase, with a masked turn is omitted
	MaskSplitRows   = "split-rows"   // like context, but each row trains one turn
)

// Masks lists the values in the order in which the help prints them.
var Masks = []string{MaskContext, MaskCut, MaskNone, MaskDropEpisode, MaskSplitRows}

// Views is the registry of views. Package sinks/views fills it.
var Views = &plugin.Registry[View, ViewOptions]{What: "view"}
