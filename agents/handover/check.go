package handover

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// Bounds of a pack; it is to be read, not searched.
const (
	maxItems   = 40   // excerpts, and values
	maxLines   = 1000 // of all excerpts
	maxCause   = 1000 // bytes
	maxNote    = 500
	maxValue   = 4000
	maxPack    = 64 << 10 // bytes of all excerpts and values
	maxProblem = 12       // told at once
)

// checker compares a call with the steps before it.
type checker struct {
	workdir string
	steps   []schemas.Step
	seen    int // steps that the model had been shown
}

// pack is the call as a pack, or everything that is wrong with it.
func (c checker) pack(a arguments) (Pack, []string) {
	var problems []string
	bad := func(where, format string, args ...any) {
		problems = append(problems, where+": "+fmt.Sprintf(format, args...))
	}
	p := Pack{Cause: oneLine(a.Cause), CauseSteps: a.CauseSteps}
	switch {
	case p.Cause == "":
		bad("cause", "is empty: say in one sentence which code makes which value wrong")
	case len(p.Cause) > maxCause:
		bad("cause", "has %d bytes: one sentence of at most %d", len(p.Cause), maxCause)
	}
	if len(a.CauseSteps) == 0 || len(a.CauseSteps) > maxItems {
		bad("cause_steps", "name at least one and at most %d steps that show the cause", maxItems)
	}
	for _, n := range a.CauseSteps[:min(len(a.CauseSteps), maxItems)] {
		if _, why := c.step(n); why != "" {
			bad("cause_steps", "%s", why)
		}
	}
	if len(a.Files) == 0 || len(a.Files) > maxItems || len(a.Values) > maxItems {
		bad("files and values", "give at least one excerpt, and at most %d of each", maxItems)
		return p, problems
	}
	lines, size := 0, 0
	for i, f := range a.Files {
		e, why := c.excerpt(f)
		if why != "" {
			bad(fmt.Sprintf("files[%d] (%s)", i, short(f.Path)), "%s", why)
		}
		lines += len(e.Lines)
		for _, l := range e.Lines {
			size += len(l.Text)
		}
		p.Files = append(p.Files, e)
	}
	if lines > maxLines {
		bad("files", "have %d lines together: at most %d, name what matters", lines, maxLines)
	}
	for i, v := range a.Values {
		e, why := c.value(v)
		if why != "" {
			bad(fmt.Sprintf("values[%d] (%s)", i, short(v.Expression)), "%s", why)
		}
		size += len(e.Value) + len(e.Expression)
		p.Values = append(p.Values, e)
	}
	if size > maxPack {
		bad("files and values", "have %d bytes together: at most %d, name what matters", size, maxPack)
	}
	if n := len(problems); n > maxProblem {
		problems = append(problems[:maxProblem], fmt.Sprintf("and %d more", n-maxProblem))
	}
	return p, problems
}

// step finds the step of a number, or says why it can bear nothing.
func (c checker) step(n int) (schemas.Step, string) {
	i := slices.IndexFunc(c.steps, func(s schemas.Step) bool { return s.Index == n })
	if i < 0 {
		return schemas.Step{}, fmt.Sprintf("there is no step %d in your work", n)
	}
	s := c.steps[i]
	switch {
	case i >= c.seen:
		return s, fmt.Sprintf("step %d was called together with this handover, so you have not seen its answer", n)
	case s.Observation == nil || s.Observation.ErrorClass == schemas.ErrNotExecuted:
		return s, fmt.Sprintf("step %d showed nothing", n)
	case s.ToolCall == nil && s.Turn >= 0, s.ToolCall != nil && s.ToolCall.Name == Name:
		return s, fmt.Sprintf("step %d is not the answer of a tool that looks at something", n)
	}
	return s, ""
}

func (c checker) excerpt(f excerpt) (Excerpt, string) {
	e := Excerpt{Path: c.relative(f.Path), Start: f.Start, End: f.Start, Step: f.Step, Note: note(f.Note)}
	if f.End != nil {
		e.End = *f.End
	}
	s, why := c.step(f.Step)
	switch {
	case why != "":
		return e, why
	case e.Start < 1 || e.End < e.Start:
		return e, fmt.Sprintf("lines %d-%d are no range: lines are counted from 1, and start <= end", e.Start, e.End)
	case e.End-e.Start >= maxLines:
		return e, fmt.Sprintf("%d lines are too many: name those that matter", e.End-e.Start+1)
	case len(e.Note) > maxNote:
		return e, fmt.Sprintf("its note has %d bytes, at most %d", len(e.Note), maxNote)
	}
	e.Tool = toolOf(s)
	files, numbered := shown(s)
	if !numbered {
		return e, fmt.Sprintf("step %d is an answer of %s, which shows no numbered lines of files: name a step of view, grep or pdb, or quote it under values", f.Step, e.Tool)
	}
	lines := files[e.Path]
	if len(lines) == 0 {
		return e, fmt.Sprintf("step %d did not show this file%s", f.Step, showed(slices.Sorted(maps.Keys(files))))
	}
	for n := e.Start; n <= e.End; n++ {
		text, ok := lines[n]
		if !ok {
			return e, fmt.Sprintf("step %d did not show line %d of it, only %s", f.Step, n, ranges(slices.Sorted(maps.Keys(lines))))
		}
		e.Lines = append(e.Lines, Line{n, text})
	}
	return e, ""
}

func (c checker) value(v value) (Value, string) {
	e := Value{Expression: oneLine(v.Expression), Value: strings.TrimSpace(v.Value), Step: v.Step, Note: note(v.Note)}
	s, why := c.step(v.Step)
	switch {
	case why != "":
		return e, why
	case e.Expression == "" || e.Value == "":
		return e, "expression and value must both be given"
	case len(e.Value) > maxValue || len(e.Expression) > maxValue:
		return e, fmt.Sprintf("it has %d bytes, at most %d: quote the part that matters", max(len(e.Value), len(e.Expression)), maxValue)
	case len(e.Note) > maxNote:
		return e, fmt.Sprintf("its note has %d bytes, at most %d", len(e.Note), maxNote)
	}
	e.Tool = toolOf(s)
	text := schemas.Plain(s.Observation.Text) // as the model saw it
	if s.ToolCall != nil {
		if _, ok := quote(text+"\n"+asked(s.ToolCall), e.Expression); !ok {
			return e, fmt.Sprintf("step %d neither asked for %q nor showed it", v.Step, short(e.Expression))
		}
	}
	found, ok := quote(text, e.Value)
	if !ok {
		return e, fmt.Sprintf("step %d did not show the value %q; it must be copied exactly", v.Step, short(e.Value))
	}
	e.Value = found
	return e, ""
}

// relative is a path as tools show it.
func (c checker) relative(p string) string {
	p = path.Clean(strings.TrimSpace(p))
	if below, ok := strings.CutPrefix(p, strings.TrimSuffix(c.workdir, "/")+"/"); ok && c.workdir != "" {
		return below
	}
	return p
}

// quote finds words in a text, whatever blanks are between them, and returns them
// as they stand there. A part of a longer word or number is no find.
func quote(text, words string) (string, bool) {
	fields := strings.Fields(words)
	for i := range fields {
		fields[i] = regexp.QuoteMeta(fields[i])
	}
	re, err := regexp.Compile(strings.Join(fields, `\s+`))
	if err != nil { // not UTF-8
		return "", false
	}
	for _, at := range re.FindAllStringIndex(text, -1) {
		if whole(text, at[0], at[1]) {
			return text[at[0]:at[1]], true
		}
	}
	return "", false
}

// whole tells whether text[from:to] is not cut out of a longer word or number.
func whole(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	first, _ := utf8.DecodeRuneInString(text[from:])
	last, _ := utf8.DecodeLastRuneInString(text[:to])
	after, width := utf8.DecodeRuneInString(text[to:])
	beyond, _ := utf8.DecodeRuneInString(text[to+width:])
	switch {
	case wordly(before) && wordly(first), wordly(last) && wordly(after):
		return false
	case unicode.IsDigit(first) && (before == '.' || before == '-'):
		return false
	case unicode.IsDigit(last) && after == '.' && unicode.IsDigit(beyond):
		return false
	}
	return true
}

func wordly(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// asked are the texts among a call's arguments.
func asked(call *schemas.ToolCall) string {
	var args map[string]any
	if json.Unmarshal(call.Arguments, &args) != nil {
		return ""
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if text, ok := args[name].(string); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

func toolOf(s schemas.Step) string {
	if s.ToolCall == nil {
		return s.Observation.Source
	}
	return s.ToolCall.Name
}

func note(s *string) string {
	if s == nil {
		return ""
	}
	return oneLine(*s)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// short is enough of a text to recognise it.
func short(s string) string {
	if s = oneLine(s); len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

func showed(files []string) string {
	if len(files) == 0 {
		return ""
	}
	more := ""
	if len(files) > 5 {
		files, more = files[:5], " and others"
	}
	return ", but " + strings.Join(files, ", ") + more
}

// ranges spells sorted line numbers: 3-5, 9.
func ranges(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if len(out) == 8 {
			out = append(out, "and others")
			break
		}
		text := strconv.Itoa(lines[i])
		if j > i {
			text += "-" + strconv.Itoa(lines[j])
		}
		out = append(out, text)
		i = j + 1
	}
	return strings.Join(out, ", ")
}
