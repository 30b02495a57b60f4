package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// Record is what the observations of an episode have shown so far. Steps are named by their step_index.
// Paths are relative to the workspace, and lines are those of the files at the step.
type Record struct {
	Stops  []Stop  // places at which the debugger stopped the program
	Values []Value // values that the debugger printed
	Frames []Frame // stack frames that the debugger listed
	Errors []Error // of debugger commands
	Lines  []Line  // source lines
	Tests  []TestRun
	Edits  []Edit

	metrics.Workspace
	session  session
	texts    []string // the observations
	lastStep int      // of texts
}

// Stop is a place at which the debugger stopped the program, before the line ran.
type Stop struct {
	Step     int
	File     string
	Line     int
	Function string // the bare name
	Event    string // line, call, return or exception
	// Returns is the value that the function is about to return, if the answer shows it.
	Returns string
	// Hit says how often the line has run in this run of the program, from 1; 0 = unknown. It is known
	// at a breakpoint that was set before the program began.
	Hit int
	// Run numbers the runs of the program from 1, and Command starts it.
	Run     int
	Command string
	By      string // the debugger command that ran the program to the stop
}

// Value is a value that the debugger printed. Several values that a command prints, such as a tuple, the
// arguments or the local variables of a function, are several Values.
type Value struct {
	Step       int
	Stop       int    // index in Record.Stops; -1 = unknown
	Up         int    // the number of frames above the stop's, in which the expression was evaluated
	File       string // of that frame; "" = unknown
	Function   string
	Expression string // "return" = the value that the function returns
	Text       string
	Command    string
	// IsDump says that the command prints all variables of a frame or all attributes of an object.
	IsDump bool
}

// Frame is a stack frame that the debugger listed.
type Frame struct {
	Step     int
	Stop     int // index in Record.Stops; -1 = unknown
	File     string
	Line     int
	Function string
}

// Error is the error of a debugger command.
type Error struct {
	Step       int
	Stop       int    // index in Record.Stops; -1 = unknown
	Expression string // "" for other commands
	Text       string
}

// Line is a source line that a step showed.
type Line struct {
	Step int
	shown.Line
	isExact bool // the text has the indentation of the file
}

// Edit is a successful call of a tool that edits.
type Edit struct {
	Step int
	File string // "" = unknown
}

// session is the state of the debugger.
type session struct {
	run     int
	command string
	stop    int // index of the current stop; -1 = the program does not run
	up      int
	frame   Frame                // the frame that up and down have chosen
	points  []schemas.Breakpoint // after the previous call
	base    map[breakpointKey]int
	text    string // JSON of points
}

type breakpointKey struct {
	file      string
	line      int
	condition string
	temporary bool
}

func keyOf(p schemas.Breakpoint) breakpointKey {
	return breakpointKey{p.File, p.Line, p.Condition, p.Temporary}
}

func newRecord(w metrics.Workspace) *Record { return &Record{Workspace: w, session: session{stop: -1}} }

// Read returns the record of an episode.
func Read(e *metrics.Episode) *Record {
	r := newRecord(e.Workspace)
	for i := range e.Rows {
		r.add(&e.Rows[i], &e.Readings[i])
	}
	return r
}

// add adds the next step of the episode.
func (r *Record) add(row *schemas.StepRow, read *metrics.Reading) {
	step := int(row.StepIndex)
	if row.Source != "agent" || row.ToolName == nil || row.Observation == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return
	}
	r.texts, r.lastStep = append(r.texts, *row.Observation), step
	isExact := metrics.Category(*row.ToolName) == "view"
	for _, l := range read.Lines {
		r.Lines = append(r.Lines, Line{step, l, isExact})
	}
	switch metrics.Category(*row.ToolName) {
	case "pdb":
		r.debug(row, read)
	case "edit":
		if row.ActionKind == metrics.Edit && (row.IsError == nil || !*row.IsError) {
			r.Edits = append(r.Edits, Edit{step, r.Relative(read.Call.Path)})
		}
	}
	r.tests(row)
}

// FirstEdit returns the step of the first edit. ok is false if there is none.
func (r *Record) FirstEdit() (step int, ok bool) {
	if len(r.Edits) == 0 {
		return 0, false
	}
	return r.Edits[0].Step, true
}

// debug reads a call of the debugger.
func (r *Record) debug(row *schemas.StepRow, read *metrics.Reading) {
	s, step := &r.session, int(row.StepIndex)
	s.command = cmp.Or(read.Call.Entrypoint, s.command)
	first := len(r.Stops)
	for _, item := range read.Answer {
		switch item.Kind {
		case metrics.OutputItem:
			if metrics.StartsProgram(item.Text) {
				r.start()
			} else if metrics.EndsProgram(item.Text) {
				s.stop = -1
			}
		case metrics.StopItem:
			if s.run == 0 {
				r.start()
			}
			if item.Text == "None" && s.stop >= 0 && r.Stops[s.stop].Event == "exception" && r.Stops[s.stop].Function == item.Function {
				item.Text = "" // pdb shows None if an error ends the function
			}
			r.Stops = append(r.Stops, Stop{Step: step, File: r.Relative(item.File), Line: item.Line, Function: item.Function,
				Event: item.Event, Returns: item.Text, Run: s.run, Command: s.command, By: item.Command})
			s.stop, s.up = len(r.Stops)-1, 0
			s.frame = Frame{File: r.Stops[s.stop].File, Function: item.Function}
			if item.Text != "" {
				r.addValue(step, "return", item)
			}
		case metrics.FrameItem:
			r.Frames = append(r.Frames, Frame{step, s.stop, r.Relative(item.File), item.Line, item.Function})
			r.move(item.Command)
		case metrics.ValueItem:
			r.addValue(step, item.Name, item)
		case metrics.ErrorItem:
			r.Errors = append(r.Errors, Error{step, s.stop, item.Name, item.Text})
		}
	}
	if event := schemas.Value(row.DebuggerEvent); event != "" && len(r.Stops) > first && s.stop >= 0 {
		r.Stops[s.stop].Event = event
	}
	r.countHits(row, first)
}

func (r *Record) addValue(step int, expression string, item metrics.AnswerItem) {
	s := &r.session
	r.Values = append(r.Values, Value{Step: step, Stop: s.stop, Up: s.up, File: s.frame.File, Function: s.frame.Function,
		Expression: expression, Text: item.Text, Command: item.Command, IsDump: metrics.IsDump(item.Command)})
}

// move chooses the frame that up or down has shown last.
func (r *Record) move(command string) {
	s := &r.session
	word, count, _ := strings.Cut(command, " ")
	n := max(1, number(count))
	switch word {
	case "u", "up":
		s.up += n
	case "d", "down":
		s.up -= n
	default:
		return
	}
	s.frame = r.Frames[len(r.Frames)-1]
}

// start begins a run of the program.
func (r *Record) start() {
	s := &r.session
	s.run++
	s.stop, s.up = -1, 0
	s.base = map[breakpointKey]int{}
	for _, p := range s.points {
		s.base[keyOf(p)] = p.Hits
	}
}

// countHits fills in the hit of the last stop of a call, and remembers the breakpoints. first is the index
// of the call's first stop.
func (r *Record) countHits(row *schemas.StepRow, first int) {
	s := &r.session
	if row.BreakpointsJSON == nil {
		return
	}
	points := s.points
	if *row.BreakpointsJSON != s.text {
		points = nil
		if json.Unmarshal([]byte(*row.BreakpointsJSON), &points) != nil {
			return
		}
		s.text = *row.BreakpointsJSON
	}
	started := slices.ContainsFunc(r.Stops[first:], func(x Stop) bool { return x.Function == "<module>" })
	for _, p := range points {
		if _, known := s.base[keyOf(p)]; !known && started {
			s.base[keyOf(p)] = 0 // set before the program ran its first line
		}
		before, known := s.base[keyOf(p)]
		if at := s.stop; known && at >= first && at == len(r.Stops)-1 && r.Stops[at].File == p.File && r.Stops[at].Line == p.Line {
			r.Stops[at].Hit = max(0, p.Hits-before)
		}
	}
	s.points = points
}
