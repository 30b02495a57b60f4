package handover

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of a Pack, so that the model that continues the work can read all of it.
const (
	maxItems    = 40       // excerpts; the same limit applies to values and to cause steps
	maxLines    = 1000     // in all excerpts together
	maxCause    = 1000     // bytes
	maxNote     = 500      // bytes
	maxValue    = 4000     // bytes
	maxPack     = 64 << 10 // bytes of all excerpts and values together
	maxProblems = 12       // problems listed in one answer
)

// checker checks a call of the handover tool against the steps before it.
type checker struct {
	workdir   string
	steps     []schemas.Step
	seenSteps int               // number of steps that the model saw before this call
	prompt    schemas.ContextOp // how the prompt before this call was shortened
}

// pack converts the arguments of a call to a Pack. It also returns the problems with the arguments,
// as texts for the model. If there are more than maxProblems, the last text counts the rest.
func (c checker) pack(a arguments) (Pack, []string) {
	var problems []string
	addProblem := func(where, format string, args ...any) {
		problems = append(problems, where+": "+fmt.Sprintf(format, args...))
	}
	p := Pack{Cause: oneLine(a.Cause), CauseSteps: a.CauseSteps}
	switch {
	case p.Cause == "":
		addProblem("cause", "is empty: say in one sentence which code makes which value wrong")
	case len(p.Cause) > maxCause:
		addProblem("cause", "has %d bytes: write one sentence of at most %d", len(p.Cause), maxCause)
	}
	if len(a.CauseSteps) == 0 || len(a.CauseSteps) > maxItems {
		addProblem("cause_steps", "name at least one and at most %d steps that show the cause", maxItems)
	}
	for _, n := range a.CauseSteps[:min(len(a.CauseSteps), maxItems)] {
		if _, why := c.step(n); why != "" {
			addProblem("cause_steps", "%s", why)
		}
	}
	if len(a.Files) == 0 || len(a.Files) > maxItems || len(a.Values) > maxItems {
		addProblem("files and values", "give at least one excerpt, and at most %d of each", maxItems)
		return p, problems
	}
	lines, size := 0, 0 // number of lines; bytes
	for i, f := range a.Files {
		e, why := c.excerpt(f)
		if why != "" {
			addProblem(fmt.Sprintf("files[%d] (%s)", i, abbreviate(f.Path)), "%s", why)
		}
		lines += len(e.Lines)
		for _, l := range e.Lines {
			size += len(l.Text)
		}
		p.Files = append(p.Files, e)
	}
	if lines > maxLines {
		addProblem("files", "have %d lines in total, and at most %d are allowed: name only those that matter", lines, maxLines)
	}
	for i, v := range a.Values {
		e, why := c.value(v)
		if why != "" {
			addProblem(fmt.Sprintf("values[%d] (%s)", i, abbreviate(v.Expression)), "%s", why)
		}
		size += len(e.Value) + len(e.Expression)
		p.Values = append(p.Values, e)
	}
	if size > maxPack {
		addProblem("files and values", "have %d bytes in total, and at most %d are allowed: name only what matters", size, maxPack)
	}
	if n := len(problems); n > maxProblems {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", n-maxProblems))
	}
	return p, problems
}

// step returns step n with its text as the model saw it. If nothing in the step can be handed over,
// the second result says why.
func (c checker) step(n int) (schemas.Step, string) {
	i := slices.IndexFunc(c.steps, func(s schemas.Step) bool { return s.Index == n })
	if i < 0 {
		return schemas.Step{}, fmt.Sprintf("step %d does not exist", n)
	}
	s := c.steps[i]
	switch {
	case i >= c.seenSteps:
		return s, fmt.Sprintf("step %d belongs to the same reply as this handover, so you had not seen its answer", n)
	case s.Observation == nil, notCarriedOut(s.Observation.ErrorClass):
		return s, fmt.Sprintf("step %d showed nothing", n)
	case s.ToolCall == nil && s.Turn >= 0, s.ToolCall != nil && s.ToolCall.Name == Name:
		return s, fmt.Sprintf("step %d did not call a tool that shows code or values", n)
	}
	o := *s.Observation
	o.Text = c.visible(i)
	s.Observation = &o
	return s, ""
}

// notCarriedOut reports whether calls with this error class were not executed as the model
// intended. Their answers prove nothing, because they may repeat words of the call.
func notCarriedOut(class string) bool {
	switch class {
	case schemas.ErrNotExecuted, schemas.ErrBadArguments, schemas.ErrUnknownTool, schemas.ErrSandboxDied, schemas.ErrToolException:
		return true
	}
	return false
}

// visible returns the text of step i as the model first saw it. It replaces trimmed characters with
// shown.HiddenRune but keeps line breaks, so that lines can still be counted.
func (c checker) visible(i int) string {
	text, prompt := schemas.Plain(c.steps[i].Observation.Text), c.prompt
	for _, s := range c.steps[i+1:] {
		if s.Reply != nil {
			prompt = schemas.Value(s.Reply.Context)
			break
		}
	}
	for _, t := range prompt.Trimmed {
		if t.Step != c.steps[i].Index {
			continue
		}
		var out strings.Builder
		n := 0
		for _, r := range text {
			isTrimmed := t.From <= n && n < t.To
			if isTrimmed {
				out.WriteRune(shown.HiddenRune)
			}
			if !isTrimmed || r == '\n' {
				out.WriteRune(r)
			}
			n++
		}
		return out.String()
	}
	return text
}

// aliased reports whether a step before the given one may have redefined a command of pdb.
func (c checker) aliased(before int) bool {
	return slices.ContainsFunc(c.steps, func(s schemas.Step) bool {
		return s.Index < before && s.ToolCall != nil && s.ToolCall.Name == "pdb" && strings.Contains(string(s.ToolCall.Arguments), "alias")
	})
}

func (c checker) stepsBefore(step int) []schemas.Step {
	i := slices.IndexFunc(c.steps, func(s schemas.Step) bool { return s.Index >= step })
	return c.steps[:max(i, 0)]
}

// excerpt converts the arguments of one excerpt. If the excerpt cannot be handed over, the second
// result says why.
func (c checker) excerpt(f excerptArgs) (Excerpt, string) {
	e := Excerpt{Path: c.relative(f.Path), Start: f.Start, End: f.Start, Step: f.Step, Note: oneLine(schemas.Value(f.Note))}
	if f.End != nil {
		e.End = *f.End
	}
	s, why := c.step(f.Step)
	switch {
	case why != "":
		return e, why
	case e.Start < 1 || e.End < e.Start:
		return e, fmt.Sprintf("lines %d-%d are not a range: line numbers begin at 1, and start must not be greater than end", e.Start, e.End)
	case e.End-e.Start >= maxLines:
		return e, fmt.Sprintf("%d lines are too many: name only those that matter", e.End-e.Start+1)
	case len(e.Note) > maxNote:
		return e, fmt.Sprintf("its note has %d bytes, and at most %d are allowed", len(e.Note), maxNote)
	}
	e.Tool = toolOf(s)
	answer, _ := shown.AnswerOf(s)
	all, numbered := shown.Lines(answer, c.aliased(f.Step))
	if e.Tool == "bash" {
		all = shown.ShellLines(s, c.stepsBefore(f.Step))
		numbered = len(all) > 0
	}
	files := map[string]map[int]string{}
	for _, l := range all {
		if e.Tool == "bash" {
			l.File = c.relative(l.File)
		}
		if files[l.File] == nil {
			files[l.File] = map[int]string{}
		}
		files[l.File][l.Number] = l.Text
	}
	if !numbered {
		return e, fmt.Sprintf("step %d is an answer of %s that shows no numbered lines of a file: name a step of view, grep or pdb, or a step of bash that only ran cat, head, sed -n or grep -n on one file; or quote the text under values", f.Step, e.Tool)
	}
	if name, err := strconv.Unquote(e.Path); err == nil && files[e.Path] == nil {
		e.Path = name // tools show unusual names in quotes
	}
	lines := files[e.Path]
	if len(lines) == 0 {
		return e, fmt.Sprintf("step %d did not show this file%s", f.Step, otherFiles(slices.Sorted(maps.Keys(files))))
	}
	for n := e.Start; n <= e.End; n++ {
		text, ok := lines[n]
		if !ok {
			return e, fmt.Sprintf("step %d did not show line %d of this file, only %s", f.Step, n, ranges(slices.Sorted(maps.Keys(lines))))
		}
		e.Lines = append(e.Lines, Line{n, text})
	}
	return e, ""
}

// value converts the arguments of one value. If the value cannot be handed over, the second result
// says why.
func (c checker) value(v valueArgs) (Value, string) {
	e := Value{Expression: oneLine(v.Expression), Value: strings.TrimSpace(v.Value), Step: v.Step, Note: oneLine(schemas.Value(v.Note))}
	s, why := c.step(v.Step)
	switch {
	case why != "":
		return e, why
	case e.Expression == "" || e.Value == "":
		return e, "expression and value must both be given"
	case len(e.Value) > maxValue || len(e.Expression) > maxValue:
		return e, fmt.Sprintf("it has %d bytes, and at most %d are allowed: quote only the part that matters", max(len(e.Value), len(e.Expression)), maxValue)
	case len(e.Note) > maxNote:
		return e, fmt.Sprintf("its note has %d bytes, and at most %d are allowed", len(e.Note), maxNote)
	}
	e.Tool = toolOf(s)
	text := s.Observation.Text
	if _, ok := findWords(text+"\n"+callWords(s), e.Expression, nil); !ok {
		return e, fmt.Sprintf("step %d neither asked for %q nor showed it", v.Step, abbreviate(e.Expression))
	}
	output, code := splitSource(s)
	found, ok := findWords(output, e.Value, locationRanges(s.ToolCall, output))
	if !ok {
		if _, ok = findWords(code, e.Value, locationRanges(s.ToolCall, code)); ok {
			return e, fmt.Sprintf("in step %d, %q appears only in the source around the current line: name lines of code under files", v.Step, abbreviate(e.Value))
		}
		return e, fmt.Sprintf("step %d did not show the value %q: copy it exactly", v.Step, abbreviate(e.Value))
	}
	if echoesCall(s, found) {
		return e, fmt.Sprintf("in step %d, %q only repeats words of your own call: quote what the answer says about them", v.Step, abbreviate(e.Value))
	}
	switch pairingOf(s, output, e.Expression, found, c.aliased(v.Step+1)) {
	case pairRefuted:
		return e, fmt.Sprintf("in step %d, %q was printed for another expression than %q: name the expression it was printed for", v.Step, abbreviate(e.Value), abbreviate(e.Expression))
	case pairUnknown:
		e.Unverified = true
	}
	e.Value = found
	return e, ""
}

// relative cleans a path and makes a path in the workspace relative, as tools show it.
func (c checker) relative(p string) string {
	p = path.Clean(strings.TrimSpace(p))
	if below, ok := strings.CutPrefix(p, strings.TrimSuffix(c.workdir, "/")+"/"); ok && c.workdir != "" {
		return below
	}
	return p
}

// toolOf returns the tool that a step called, or for a step without a call the source of its
// observation.
func toolOf(s schemas.Step) string {
	if s.ToolCall == nil {
		return s.Observation.Source
	}
	return s.ToolCall.Name
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// abbreviate shortens a text for a message.
func abbreviate(s string) string {
	if s = oneLine(s); len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// otherFiles names the files that a step did show, for an error message. It returns "" for no files.
func otherFiles(files []string) string {
	if len(files) == 0 {
		return ""
	}
	more := ""
	if len(files) > 5 {
		files, more = files[:5], " and others"
	}
	return ", but " + strings.Join(files, ", ") + more
}

// ranges formats sorted line numbers, such as "3-5, 9".
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
