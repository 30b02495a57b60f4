package metrics

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// This file finds out which lines of files a step showed, in the formats of tracesmith's tools and of
// other harnesses. Like a reader, it takes the output of a program at its word: a program that prints
// a traceback shows the lines in it. (The handover tool, whose excerpts must be certain, does not.)

// Episode holds the rows of an episode with what their answers showed, so that all metrics read each answer once.
type Episode struct {
	Rows     []schemas.StepRow
	Readings []Reading // by index of Rows
	Workspace
}

// Reading is what the answer to a call showed. It is empty for rows without an answer and for refused calls.
type Reading struct {
	Call     Arguments
	Lines    []shown.Line // with paths relative to the workspace
	Files    []string     // files that the answer names with a place, without necessarily showing text
	Answer   []AnswerItem // of the debugger
	IsOpaque bool         // the call may have shown lines in a format that this package does not know

	paused linePlace // the last stack frame with the mark of the current one, as the answer names it
}

// linePlace is a line of a file.
type linePlace struct {
	file string
	line int
}

// Arguments holds the arguments of known tools.
type Arguments struct {
	Command    string `json:"command"`
	Cmd        string `json:"cmd"`
	Path       string `json:"path"`
	OldText    string `json:"old_str"`
	NewText    string `json:"new_str"`
	InsertLine *int   `json:"insert_line"`
	Entrypoint string `json:"entrypoint"`
}

// Read reads the rows of an episode.
func Read(rows []schemas.StepRow, workspace string) *Episode {
	e := &Episode{rows, make([]Reading, len(rows)), Workspace(workspace)}
	for i := range rows {
		e.Readings[i].read(&rows[i], e.Workspace)
	}
	return e
}

// Kinds of tools by their answers.
const (
	shellTool  = "shell"
	editorTool = "editor" // str_replace_editor and its variants
)

// toolKind returns the category of a tool, or one of the kinds above.
func toolKind(name string) string {
	switch name {
	case "execute_bash", "shell", "terminal", "run_command", "cmd", "execute":
		return shellTool
	case "str_replace_editor", "str_replace_based_edit_tool":
		return editorTool
	}
	if category := Category(name); category != "bash" {
		return category
	}
	return shellTool
}

// read fills in what a step showed. The answers to edits show nothing, because they repeat what the agent wrote and where.
func (r *Reading) read(row *schemas.StepRow, w Workspace) {
	if row.ToolName == nil || row.Observation == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return
	}
	arguments, text := json.RawMessage(schemas.Value(row.ArgumentsJSON)), *row.Observation
	if len(arguments) > len("{}") {
		_ = json.Unmarshal(arguments, &r.Call) // arguments of unknown tools may have other types
	}
	r.Call.Command = cmp.Or(r.Call.Command, r.Call.Cmd)
	switch toolKind(*row.ToolName) {
	case "view", "grep":
		answer := shown.Answer{Tool: *row.ToolName, Arguments: arguments, Text: text, Targets: row.Targets}
		if lines, ok := shown.Lines(answer, false); ok && len(lines) > 0 {
			r.Lines = append(r.Lines, lines...)
		} else {
			r.sections(text)
			r.IsOpaque = len(r.Lines) == 0 && succeeded(*row) && len(row.Targets) == 0 && strings.Contains(text, "\n")
		}
	case "pdb":
		r.debugger(row, text)
	case shellTool:
		r.shell(row, text)
	case editorTool:
		if r.Call.Command == "view" {
			r.numbered(r.Call.Path, text)
		}
	case "edit", "listdir", "submit", "handover":
	case "other":
		r.IsOpaque = !r.tracebacks(text, nil)
	default:
		r.tracebacks(text, nil)
	}
	for i := range r.Lines {
		r.Lines[i].File = w.Relative(r.Lines[i].File)
	}
	for i := range r.Files {
		r.Files[i] = w.Relative(r.Files[i])
	}
}

// Workspace is the path of the workspace in the sandbox; "" = one of the usual ones.
type Workspace string

// Relative returns a path relative to the workspace. If the workspace is unknown, it recognizes the
// usual ones: /testbed, /workspace/NAME and /OWNER__NAME. Other absolute paths stay.
func (w Workspace) Relative(p string) string {
	if p == "" || p[0] != '/' && p[0] != '.' && !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return p
	}
	p = path.Clean(p)
	if p[0] != '/' {
		return p
	}
	if w != "" {
		if below, ok := strings.CutPrefix(p, strings.TrimSuffix(string(w), "/")+"/"); ok {
			return below
		}
		return p
	}
	first, below, _ := strings.Cut(p[1:], "/")
	switch {
	case first == "testbed" && below != "", strings.Contains(first, "__") && below != "":
		return below
	case first == "workspace":
		if name, rest, ok := strings.Cut(below, "/"); ok && strings.Contains(name, "__") {
			return rest
		}
		return below
	}
	return p
}

// add adds a line unless its number is impossible.
func (r *Reading) add(file string, n int, text string) {
	if n > 0 && n <= maxLine && file != "" {
		r.Lines = append(r.Lines, shown.Line{File: file, Number: n, Text: text})
	}
}

// maxLine limits the numbers of lines, so that a made-up number costs no memory.
const maxLine = 1 << 18

// sections reads the answers of view and grep of debug-gym: a heading that names a file, and
// numbered lines.
func (r *Reading) sections(text string) {
	file, expected := "", 0
	plain := false // the lines have no numbers
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "Viewing `"); ok {
			name, where, _ := strings.Cut(rest, "`, lines ")
			file = name
			expected, _, _ = leadingNumber(where)
			continue
		}
		if rest, ok := strings.CutPrefix(line, "=== "); ok {
			if name, ok := strings.CutSuffix(rest, " ==="); ok {
				file, expected = name, 0
				continue
			}
		}
		if line == "```" && len(r.Lines) > 0 {
			return
		}
		if file == "" || line == "```" || line == "" && expected > 0 && !plain {
			continue
		}
		if expected == 0 { // grep
			if n, text, ok := shown.GrepLine(line); ok {
				r.add(file, n, text)
			}
			continue
		}
		if len(line) > 2 && !plain {
			if n, rest, ok := leadingNumber(strings.TrimLeft(line[1:], " ")); ok && n == expected && (line[0] == ' ' || line[0] == 'B') {
				r.add(file, n, strings.TrimPrefix(rest, " "))
				expected++
				continue
			}
		}
		if !plain && len(r.Lines) > 0 {
			return // the end of the listing
		}
		plain = true
		r.add(file, expected, line)
		expected++
	}
}

// numbered reads lines of one file in the format of cat -n.
func (r *Reading) numbered(file, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if n, rest, ok := leadingNumber(strings.TrimLeft(line, " ")); ok && strings.HasPrefix(rest, "\t") {
			r.add(file, n, rest[1:])
		}
	}
}

// debugger reads an answer of pdb: its parts, listings of the current file, and the source line under each stack
// frame.
func (r *Reading) debugger(row *schemas.StepRow, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	r.Answer = debuggerAnswer(lines, r.Call.Command)
	file := schemas.Value(row.FrameFile)
	if last := len(r.Answer) - 1; file == "" && last >= 0 && r.Answer[last].Kind == CurrentItem {
		file = r.Answer[last].File
	}
	for i := len(lines) - 1; i >= 0 && file == ""; i-- {
		file, _, _ = stackPlace(lines[i])
	}
	at, atLine := "", 0
	for _, line := range lines {
		if f, n, ok := stackPlace(line); ok {
			at, atLine = f, n
			r.Files = append(r.Files, f)
			if line[0] == '>' {
				r.paused = linePlace{f, n}
			}
			continue
		}
		if source, ok := strings.CutPrefix(line, "-> "); ok && at != "" {
			r.add(at, atLine, source)
		} else if n, source, ok := shown.PDBLine(line); ok {
			r.add(file, n, source)
		}
		at = ""
	}
	if file != "" {
		r.Files = append(r.Files, file)
	}
	r.tracebacks(text, lines)
}

// tracebacks reads the source lines in tracebacks of Python and of pytest. It reports whether there
// are any. lines may hold the lines of text.
func (r *Reading) tracebacks(text string, lines []string) bool {
	before := len(r.Files)
	if !strings.Contains(text, `File "`) && !strings.Contains(text, ".py:") {
		return false
	}
	if lines == nil {
		lines = strings.Split(text, "\n")
	}
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " E"), `File "`); ok {
			name, rest, _ := strings.Cut(rest, `", line `)
			n, _, ok := leadingNumber(rest)
			if !ok || strings.HasPrefix(name, "<") {
				continue
			}
			r.Files = append(r.Files, name)
			if i+1 < len(lines) {
				if source := strings.TrimLeft(lines[i+1], " E"); source != "" && !strings.HasPrefix(source, `File "`) {
					r.add(name, n, source)
				}
			}
			continue
		}
		if name, n, ok := pytestPlace(line); ok {
			r.Files = append(r.Files, name)
			r.pytestSource(name, n, lines[:i])
		}
	}
	return len(r.Files) > before
}

// pytestPlace reads the place below a traceback of pytest: "path.py:12: ValueError".
func pytestPlace(line string) (file string, n int, ok bool) {
	at := strings.Index(line, ".py:")
	if at <= 0 || strings.ContainsAny(line[:at], " \t") {
		return "", 0, false
	}
	n, rest, ok := leadingNumber(line[at+4:])
	return line[:at+3], n, ok && strings.HasPrefix(rest, ":")
}

// pytestSource reads the source above a place in a traceback of pytest. Its last line, which begins
// with ">", is line n of the file.
func (r *Reading) pytestSource(file string, n int, above []string) {
	i := len(above) - 1
	for i >= 0 && (above[i] == "" || above[i][0] == 'E') {
		i--
	}
	if i < 0 || above[i][0] != '>' {
		return
	}
	r.add(file, n, strings.TrimPrefix(above[i], ">"))
	for i--; i >= 0 && strings.HasPrefix(above[i], "    "); i-- {
		n--
		r.add(file, n, above[i])
	}
}
