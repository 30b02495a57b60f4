package sinks

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
)

// Trajectory is one episode with its steps in order and the tools it was given.
type Trajectory struct {
	Episode schemas.EpisodeRow
	Steps   []schemas.StepRow
	Tools   []schemas.ToolSchema // all of the episode's
	// ToolSets are further lists by StepRow.ToolSetSHA256, of turns that were not
	// shown all.
	ToolSets map[string][]schemas.ToolSchema
	// Annotations of the episode, where the dataset has any.
	Annotations []schemas.AnnotationRow
}

// Trajectory is the episode as views take it.
func (s Staged) Trajectory() Trajectory {
	t := Trajectory{Episode: s.Episode, Steps: s.Steps, Tools: s.Tools}
	for _, set := range s.ToolSets {
		t.AddToolSet(schemas.Hash(set), set)
	}
	return t
}

// AddToolSet keeps a list that turns were shown, unless it is the episode's.
func (t *Trajectory) AddToolSet(sha string, tools []schemas.ToolSchema) {
	if own := t.Episode.ToolSetSHA256; own != nil && *own == sha {
		return
	}
	if t.ToolSets == nil {
		t.ToolSets = map[string][]schemas.ToolSchema{}
	}
	t.ToolSets[sha] = tools
}

// ToolsAt is what the turn of a step row was shown.
func (t Trajectory) ToolsAt(s *schemas.StepRow) []schemas.ToolSchema {
	if s.ToolSetSHA256 != nil {
		if tools, ok := t.ToolSets[*s.ToolSetSHA256]; ok {
			return tools
		}
	}
	return t.Tools
}

// Containers a view's rows are written in.
const (
	JSONL   = "jsonl"
	JSONLGz = "jsonl.gz"
	JSONLZs = "jsonl.zst"
	Parquet = "parquet"
	Dir     = "dir" // a directory with a file per episode
)

// Containers lists those that -o or --container may choose, in the order help
// prints them. Dir is a view's own choice.
var Containers = []string{JSONL, JSONLGz, JSONLZs, Parquet}

// Row is one output of a view.
type Row struct {
	// Value is encoded as canonical JSON, one line each.
	Value any
	// Columns is the row as a struct with parquet tags; nil: the view has no
	// Parquet form.
	Columns any
	// Texts are what a model reads of the row, for counting tokens.
	Texts []string
	// Trained are those of Texts that the trainer's default loss is on. Masked are those of
	// the agent that are shown and must not be trained on. The others are context.
	Trained, Masked []string
	// File and Body are set by views whose container is Dir: a slash-separated
	// name below the output, and the file's content.
	File string
	Body []byte
	// Episodes are those that a row of Finish is made of.
	Episodes []string
	// Origin says where the row comes from, if its format has no place for that. It is
	// encoded as canonical JSON, one line for each row, in a file beside the output.
	Origin any
}

// View renders episodes for a trainer. Render is called once per episode, in
// order, from one goroutine.
type View interface {
	// Container is that of the output where nobody chose another one.
	Container() string
	// Render yields the rows of one episode, none if the view leaves it out. An
	// error means the episode contradicts itself, which is corruption.
	Render(Trajectory) ([]Row, Notes, error)
}

// Finisher is a View with rows that need more than one episode. Finish is called
// once, after the last Render.
type Finisher interface {
	Finish() ([]Row, Notes, error)
}

// Sidecar is a View whose output needs a second file: a suffix of the output's
// name, and its content. name is the output's own.
type Sidecar interface {
	Sidecar(name string) (suffix string, body []byte, err error)
}

// Limited is a View whose trainer by default cuts rows that are longer than a number of
// tokens. remedy says what to set instead.
type Limited interface {
	TokenLimit() (tokens int, remedy string)
}

// MissingError is why a view has no rows although episodes were selected: they
// lack what the view is made of.
type MissingError struct{ What, Remedy string }

func (e *MissingError) Error() string { return e.What + ": " + e.Remedy }

// Notes is what a view had to change or leave out, counted by a short word;
// exports sum them up in the lint report. Words that begin with rows_dropped or
// turns_cut name content that is in no row.
type Notes map[string]int

// Add sums up other notes.
func (n Notes) Add(more Notes) {
	for k, v := range more {
		n[k] += v
	}
}

// ViewOptions are the common options. A view refuses those that it cannot follow;
// "" is the view's own default.
type ViewOptions struct {
	// Mask says what to do with turns that must not be trained on.
	Mask string
	// AllowGold lets steps that come from the gold patch appear and be trained
	// on. Without it every view ends a row before the first such step.
	AllowGold bool
	// Phase renders one conversation of episodes that have more than one; "" = each,
	// in rows of its own.
	Phase string
	// Arguments of calls: object or string.
	Arguments string
	// Thinking: field, inline (in front of the reply's text, in <think> tags) or drop.
	Thinking string
	// ChatTemplate names the chat template that the rows are for. Views write
	// enable_thinking for it; "" writes none.
	ChatTemplate string
	// Tools: list or json-string.
	Tools string
	// ContentNull is what a reply of calls alone has for content: empty (""), or
	// omit, which leaves the key out.
	ContentNull string
	// System: keep, drop, or replace with SystemText.
	System     string
	SystemText string
	// Trim: none or after-resolved, which leaves out turns after the one that
	// resolved the task.
	Trim string
	// Count counts the tokens of a text; nil: nobody can.
	Count func(string) int
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
	MaskContext     = "context"      // masked turns are shown and not trained on
	MaskCut         = "cut"          // a conversation ends before its first masked turn
	MaskNone        = "none"         // masked turns are trained on
	MaskDropEpisode = "drop-episode" // an episode (a phase of one) with a masked turn is left out
	MaskSplitRows   = "split-rows"   // as context, and each row trains one turn
)

// Masks lists the values in the order help prints them.
var Masks = []string{MaskContext, MaskCut, MaskNone, MaskDropEpisode, MaskSplitRows}

// Views lists the views that exist. sinks/views fills it.
var Views = &plugin.Registry[View, ViewOptions]{What: "view"}
