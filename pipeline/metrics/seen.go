package metrics

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// This file finds out which lines of files a step showed, in the formats of tracesmith's tools and of
// other harnesses. Like a reader, it takes the output of a program at its word: a program that prints
// a traceback shows the lines in it. (The handover tool, whose excerpts must be certain, does not.)

// Reading is what the answer to a call showed.
type Reading struct {
	Lines    []shown.Line // with paths relative to the workspace
	Files    []string     // files that the answer names with a place, without necessarily showing text
	IsOpaque bool         // the call may have shown lines in a format that this package does not know
}

// Reader reads the steps of an episode in order.
type Reader struct {
	Workdir string // "" = one of the usual ones
	out     Reading
	args    callArguments
}

// callArguments holds the arguments of known tools.
type callArguments struct {
	Command    string `json:"command"`
	Cmd        string `json:"cmd"`
	Path       string `json:"path"`
	Start      any    `json:"start"`
	ViewRange  []int  `json:"view_range"`
	OldText    string `json:"old_str"`
	NewText    string `json:"new_str"`
	InsertLine *int   `json:"insert_line"`
	Entrypoint string `json:"entrypoint"`
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

// Read returns what a step showed. The result is valid until the next call. The answers to edits show
// nothing, because they repeat what the agent wrote and where.
func (r *Reader) Read(row *schemas.StepRow) *Reading {
	r.out.Lines, r.out.Files, r.out.IsOpaque = r.out.Lines[:0], r.out.Files[:0], false
	r.args = callArguments{}
	if row.ToolName == nil || row.Observation == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return &r.out
	}
	arguments, text := json.RawMessage(schemas.Value(row.ArgumentsJSON)), *row.Observation
	_ = json.Unmarshal(arguments, &r.args) // arguments of unknown tools may have other types
	r.args.Command = cmpOr(r.args.Command, r.args.Cmd)
	switch toolKind(*row.ToolName) {
	case "view", "grep":
		answer := shown.Answer{Tool: *row.ToolName, Arguments: arguments, Text: text, Targets: row.Targets}
		if lines, ok := shown.Lines(answer, false); ok && len(lines) > 0 {
			r.out.Lines = append(r.out.Lines, lines...)
		} else {
			r.sections(text)
			r.out.IsOpaque = len(r.out.Lines) == 0 && succeeded(*row) && len(row.Targets) == 0 && strings.Contains(text, "\n")
		}
	case "pdb":
		r.debugger(row, text)
	case shellTool:
		r.shell(row, text)
	case editorTool:
		if r.args.Command == "view" {
			r.numbered(r.args.Path, text)
		}
	case "edit", "listdir", "submit", "handover":
	case "other":
		r.out.IsOpaque = !r.tracebacks(text)
	default:
		r.tracebacks(text)
	}
	for i := range r.out.Lines {
		r.out.Lines[i].File = r.Relative(r.out.Lines[i].File)
	}
	for i := range r.out.Files {
		r.out.Files[i] = r.Relative(r.out.Files[i])
	}
	return &r.out
}

// Call returns arguments of the call that Read has read last: the command, the entrypoint of the debugger, and the path of a file.
func (r *Reader) Call() (command, entrypoint, path string) {
	return r.args.Command, r.args.Entrypoint, r.args.Path
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Relative returns a path relative to the workspace. If the workspace is unknown, it recognizes the
// usual ones: /testbed, /workspace/NAME and /OWNER__NAME. Other absolute paths stay.
func (r *Reader) Relative(p string) string {
	if p == "" || p[0] != '/' && p[0] != '.' && !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return p
	}
	p = path.Clean(p)
	if p[0] != '/' {
		return p
	}
	if r.Workdir != "" {
		if below, ok := strings.CutPrefix(p, strings.TrimSuffix(r.Workdir, "/")+"/"); ok {
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
func (r *Reader) add(file string, n int, text string) {
	if n > 0 && n <= maxLine && file != "" {
		r.out.Lines = append(r.out.Lines, shown.Line{File: file, Number: n, Text: text})
	}
}

// maxLine limits the numbers of lines, so that a made-up number costs no memory.
const maxLine = 1 << 18

// sections reads the answers of view and grep of debug-gym: a heading that names a file, and
// numbered lines.
func (r *Reader) sections(text string) {
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
		if line == "```" && len(r.out.Lines) > 0 {
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
		if !plain && len(r.out.Lines) > 0 {
			return // the end of the listing
		}
		plain = true
		r.add(file, expected, line)
		expected++
	}
}

// leadingNumber reads the number at the start of a text.
func leadingNumber(text string) (n int, rest string, ok bool) {
	end := 0
	for end < len(text) && end < 8 && '0' <= text[end] && text[end] <= '9' {
		n = 10*n + int(text[end]-'0')
		end++
	}
	return n, text[end:], end > 0
}

// numbered reads lines of one file in the format of cat -n.
func (r *Reader) numbered(file, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if n, rest, ok := leadingNumber(strings.TrimLeft(line, " ")); ok && strings.HasPrefix(rest, "\t") {
			r.add(file, n, rest[1:])
		}
	}
}

// debugger reads an answer of pdb: listings of the current file, and the source line under each stack
// frame.
func (r *Reader) debugger(row *schemas.StepRow, text string) {
	file := schemas.Value(row.FrameFile)
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0 && file == ""; i-- {
		if f, _, ok := stackPlace(lines[i]); ok {
			file = f
		} else if rest, ok := strings.CutPrefix(lines[i], "Current frame: "); ok {
			if name, _, ok := strings.Cut(rest, ":"); ok {
				file = name
			}
		}
	}
	at, atLine := "", 0
	for _, line := range lines {
		if f, n, ok := stackPlace(line); ok {
			at, atLine = f, n
			r.out.Files = append(r.out.Files, f)
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
		r.out.Files = append(r.out.Files, file)
	}
	r.tracebacks(text)
}

// stackPlace reads a stack frame of pdb: "> path(12)name()".
func stackPlace(line string) (file string, n int, ok bool) {
	if len(line) < 5 || line[1] != ' ' || line[0] != '>' && line[0] != ' ' {
		return "", 0, false
	}
	rest := strings.TrimLeft(line[2:], " ")
	open := strings.IndexByte(rest, '(')
	if open <= 0 || strings.ContainsAny(rest[:open], " <") {
		return "", 0, false
	}
	n, after, ok := leadingNumber(rest[open+1:])
	if !ok || !strings.HasPrefix(after, ")") || !strings.Contains(after, "(") {
		return "", 0, false
	}
	return rest[:open], n, true
}

// tracebacks reads the source lines in tracebacks of Python and of pytest. It reports whether there
// are any.
func (r *Reader) tracebacks(text string) bool {
	before := len(r.out.Files)
	if !strings.Contains(text, `File "`) && !strings.Contains(text, ".py:") {
		return false
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " E"), `File "`); ok {
			name, rest, _ := strings.Cut(rest, `", line `)
			n, _, ok := leadingNumber(rest)
			if !ok || strings.HasPrefix(name, "<") {
				continue
			}
			r.out.Files = append(r.out.Files, name)
			if i+1 < len(lines) {
				if source := strings.TrimLeft(lines[i+1], " E"); source != "" && !strings.HasPrefix(source, `File "`) {
					r.add(name, n, source)
				}
			}
			continue
		}
		if name, n, ok := pytestPlace(line); ok {
			r.out.Files = append(r.out.Files, name)
			r.pytestSource(name, n, lines[:i])
		}
	}
	return len(r.out.Files) > before
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
func (r *Reader) pytestSource(file string, n int, above []string) {
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
