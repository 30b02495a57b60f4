package viewer

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// stopView is the state of the debugger after a step, next to the text of the step.
type stopView struct {
	Place       string // file:line
	Function    string
	Event       string
	Source      string // lines around the frame, as far as the episode has shown them
	Breakpoints []breakpointView
	Values      []valueView
	Changes     []string // since the previous stop
}

type breakpointView struct{ Text, Class string }

// valueView is a value that the debugger printed. Before is the value of the same expression at an
// earlier stop in the same function, and empty if there is none or it is equal.
type valueView struct {
	Expression, Value, Before string
	BeforeStep                int32
}

type breakpoint struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Condition string `json:"condition"`
	Enabled   *bool  `json:"enabled"`
	Temporary bool   `json:"temporary"`
	Hits      int    `json:"hits"`
}

func (b breakpoint) place() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// printed is a value with the step that printed it.
type printed struct {
	text string
	step int32
}

// tracker follows the debugger through an episode.
type tracker struct {
	source      map[string]map[int]string // lines that the steps have shown, by file
	values      map[[2]string]printed     // by function and expression
	breakpoints []breakpoint
	frame       string // place and function of the last stop; "" if there is none
}

func newTracker() *tracker {
	return &tracker{source: map[string]map[int]string{}, values: map[[2]string]printed{}}
}

// observe takes in a step and returns the state of the debugger after it. It returns nil for steps
// that do not use the debugger.
func (t *tracker) observe(s *schemas.StepRow) *stopView {
	answer := shown.Answer{
		Tool: schemas.Value(s.ToolName), Arguments: json.RawMessage(schemas.Value(s.ArgumentsJSON)),
		Text: schemas.Value(s.Observation), Targets: s.Targets,
	}
	for _, file := range s.FilesChanged {
		delete(t.source, file)
	}
	if s.Observation != nil && answer.Text != "" {
		lines, _ := shown.Lines(answer, false)
		for _, line := range lines {
			if t.source[line.File] == nil {
				t.source[line.File] = map[int]string{}
			}
			t.source[line.File][line.Number] = line.Text
		}
	}
	var now []breakpoint
	if s.BreakpointsJSON != nil {
		_ = json.Unmarshal([]byte(*s.BreakpointsJSON), &now) // a damaged list shows as no breakpoints
	}
	before := t.breakpoints
	t.breakpoints = now
	if answer.Tool != "pdb" {
		return nil
	}
	v := &stopView{Event: eventText(schemas.Value(s.DebuggerEvent))}
	v.Changes = breakpointChanges(before, now)
	t.moveTo(s, v)
	v.Values = t.print(s, answer)
	t.listBreakpoints(v, schemas.Value(s.FrameFile), int(schemas.Value(s.FrameLine)))
	return v
}

// eventText says why the program is stopped. A plain line needs no explanation.
func eventText(event string) string {
	switch event {
	case "line":
		return ""
	case "call":
		return "at the start of the function"
	case "return":
		return "about to return"
	case "exception":
		return "after an exception"
	case "finished":
		return "the program has finished"
	}
	return event
}

// moveTo sets the frame of v and says how it differs from the one before.
func (t *tracker) moveTo(s *schemas.StepRow, v *stopView) {
	frame := ""
	if s.FrameFile != nil && s.FrameLine != nil {
		v.Place, v.Function = fmt.Sprintf("%s:%d", *s.FrameFile, *s.FrameLine), schemas.Value(s.FrameFunction)
		frame = v.Place + " in " + v.Function
		v.Source = t.around(*s.FrameFile, int(*s.FrameLine))
	}
	switch {
	case frame == t.frame:
	case t.frame == "":
		v.Changes = append([]string{"first stop"}, v.Changes...)
	case frame == "":
		v.Changes = append([]string{"left " + t.frame}, v.Changes...)
	default:
		v.Changes = append([]string{"moved from " + t.frame}, v.Changes...)
	}
	t.frame = frame
}

// sourceContext is the number of lines of source on each side of the frame.
const sourceContext = 5

// around returns the lines around a line, with their numbers, breakpoints and the current line. It
// omits the indentation that all of them have, because the panel is narrow.
func (t *tracker) around(file string, line int) string {
	lines := t.source[file]
	indent := math.MaxInt
	for n := line - sourceContext; n <= line+sourceContext; n++ {
		if text := lines[n]; strings.TrimSpace(text) != "" {
			indent = min(indent, len(text)-len(strings.TrimLeft(text, " ")))
		}
	}
	var out strings.Builder
	for n := line - sourceContext; n <= line+sourceContext; n++ {
		text, ok := lines[n]
		if !ok {
			continue
		}
		mark := " "
		if slices.ContainsFunc(t.breakpoints, func(b breakpoint) bool { return b.File == file && b.Line == n }) {
			mark = "●"
		}
		arrow := " "
		if n == line {
			arrow = "▶"
		}
		fmt.Fprintf(&out, "%s%s%4d  %s\n", mark, arrow, n, visible(text[min(indent, len(text)):]))
	}
	return out.String()
}

// print returns the values that a command of the debugger printed, and remembers them.
func (t *tracker) print(s *schemas.StepRow, a shown.Answer) []valueView {
	command := strings.TrimSpace(shown.Command(a.Arguments))
	verb, expression, _ := strings.Cut(command, " ")
	if strings.ContainsAny(command, "\n;") || schemas.Value(s.IsError) {
		return nil
	}
	output, _ := shown.SplitListing(a)
	output, _, _ = strings.Cut(output, "\nCurrent frame: ")
	var views []valueView
	switch verb {
	case "p", "pp":
		views = append(views, t.remember(s, strings.TrimSpace(expression), output))
	case "a", "args":
		for line := range strings.Lines(output) {
			if name, value, ok := strings.Cut(line, " = "); ok {
				views = append(views, t.remember(s, name, value))
			}
		}
	}
	return views
}

// remember stores a value and compares it with the one before.
func (t *tracker) remember(s *schemas.StepRow, expression, value string) valueView {
	value = strings.TrimSpace(value)
	key := [2]string{schemas.Value(s.FrameFile) + " " + schemas.Value(s.FrameFunction), expression}
	v := valueView{Expression: visible(expression), Value: visible(cutAt(value, preview))}
	if old, ok := t.values[key]; ok && old.text != value {
		v.Before, v.BeforeStep = visible(cutAt(old.text, preview)), old.step
	}
	t.values[key] = printed{value, s.StepIndex}
	return v
}

// breakpointChanges says which breakpoints were set, removed or hit.
func breakpointChanges(before, now []breakpoint) []string {
	var changes []string
	at := func(list []breakpoint, b breakpoint) int {
		return slices.IndexFunc(list, func(o breakpoint) bool { return o.File == b.File && o.Line == b.Line })
	}
	for _, b := range now {
		i := at(before, b)
		switch {
		case i < 0:
			changes = append(changes, "set breakpoint "+b.place())
		case b.Hits > before[i].Hits:
			changes = append(changes, fmt.Sprintf("hit breakpoint %s (%s)", b.place(), plural(int64(b.Hits), "time")))
		case b.Condition != before[i].Condition:
			changes = append(changes, "changed the condition of "+b.place())
		}
	}
	for _, b := range before {
		if at(now, b) < 0 {
			changes = append(changes, "removed breakpoint "+b.place())
		}
	}
	return changes
}

func (t *tracker) listBreakpoints(v *stopView, file string, line int) {
	for _, b := range t.breakpoints {
		view := breakpointView{Text: path.Base(b.File) + fmt.Sprintf(":%d", b.Line)}
		if b.Condition != "" {
			view.Text += " if " + visible(b.Condition)
		}
		if b.Temporary {
			view.Text += ", once"
		}
		if b.Hits > 0 {
			view.Text += ", hit " + plural(int64(b.Hits), "time")
		}
		switch {
		case b.Enabled != nil && !*b.Enabled:
			view.Text, view.Class = view.Text+", disabled", "off"
		case b.File == file && b.Line == line:
			view.Class = "here"
		}
		v.Breakpoints = append(v.Breakpoints, view)
	}
}
