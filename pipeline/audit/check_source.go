package audit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// line returns the text of a line as it was shown last. The file may be empty or the end of a path; ok is false
// if no file or more than one matches.
func (r *Record) line(file string, n int) (l Line, ok bool) {
	for i := len(r.Lines) - 1; i >= 0; i-- {
		got := r.Lines[i]
		if got.Number != n || file != "" && !sameFile(file, got.File) {
			continue
		}
		if ok && got.File != l.File {
			return Line{}, false
		}
		if !ok {
			l, ok = got, true
		}
	}
	return l, ok
}

func (r *Record) checkSource(c schemas.Claim) verdict {
	text := codeKey(c.Text)
	known := false
	for _, l := range r.Lines {
		if l.Number == c.Line && (c.File == "" || sameFile(c.File, l.File)) {
			known = true
			if strings.Contains(codeKey(l.Text), text) {
				return isTrue("step %d shows it", l.Step)
			}
		}
	}
	// If several files match, ok is false, because the claim may be about any of them.
	if l, ok := r.line(c.File, c.Line); ok && known && !r.edited(l.File) && (c.File != "" || r.stoppedIn(l.File)) {
		return isFalse("step %d shows %s", l.Step, short(strings.TrimSpace(l.Text)))
	}
	return unchecked("no step shows the line")
}

func codeKey(text string) string { return expressionKey(strings.Trim(text, "`")) }

func (r *Record) edited(file string) bool {
	return slices.ContainsFunc(r.Edits, func(e Edit) bool { return e.File == file || e.File == "" })
}

func (r *Record) stoppedIn(file string) bool {
	s := r.current()
	return s != nil && s.File == file
}

var definitionLine = regexp.MustCompile(`^\s*(?:async\s+def|def|class)\s+([A-Za-z_]\w*)`)

// isDefinition reports whether a line defines a function or class.
func isDefinition(line, name string) bool {
	if !strings.Contains(line, name) || !strings.Contains(line, "def ") && !strings.Contains(line, "class ") {
		return false
	}
	m := definitionLine.FindStringSubmatch(line)
	return m != nil && m[1] == name
}

// definitions returns the lines that define a function or class, without repetitions.
func (r *Record) definitions(file, name string) []Line {
	var out []Line
	for _, l := range r.Lines {
		if file != "" && !sameFile(file, l.File) || !isDefinition(l.Text, name) {
			continue
		}
		if !slices.ContainsFunc(out, func(o Line) bool { return o.File == l.File && o.Number == l.Number }) {
			out = append(out, l)
		}
	}
	return out
}

func (r *Record) checkDefinition(c schemas.Claim) verdict {
	found := r.definitions(c.File, bareName(c.Function))
	for _, l := range found {
		if c.Line == 0 || l.Number == c.Line {
			return isTrue("step %d shows it", l.Step)
		}
	}
	if len(found) == 1 && !r.edited(found[0].File) {
		return isFalse("step %d shows it at %s:%d", found[0].Step, found[0].File, found[0].Number)
	}
	return unchecked("no step shows the definition")
}

// body returns the shown lines of a definition. whole says that they are all of its lines.
func (r *Record) body(def Line) (text []string, whole bool) {
	lines, exact := map[int]string{}, map[int]bool{}
	for _, l := range r.Lines {
		if l.File != def.File || l.Number < def.Number {
			continue
		}
		old, ok := lines[l.Number]
		if exact[l.Number] && !l.isExact {
			continue
		}
		if l.isExact || !ok || strings.TrimSpace(old) != strings.TrimSpace(l.Text) || betterIndent(indentOf(l.Text), indentOf(old), l.Number == def.Number) {
			lines[l.Number] = l.Text
		}
		exact[l.Number] = exact[l.Number] || l.isExact
	}
	depth := indentOf(lines[def.Number])
	for n := def.Number; ; n++ {
		line, ok := lines[n]
		switch {
		case !ok:
			return text, false
		case n > def.Number && strings.TrimSpace(line) != "" && indentOf(line) <= depth && !strings.HasPrefix(strings.TrimSpace(line), ")"):
			return text, true
		}
		text = append(text, line)
	}
}

// betterIndent reports whether a line that was shown with the indentations a and b more likely has a in its file.
// Pytest indents source, and stacks show it without indentation.
func betterIndent(a, b int, isDefinition bool) bool {
	if !isDefinition && (a == 0 || b == 0) {
		return b == 0
	}
	return a < b
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

func (r *Record) checkCall(c schemas.Claim) verdict {
	callee, caller := bareName(c.Function), bareFunction(c.Caller)
	for i := 1; i < len(r.Frames); i++ {
		a, b := r.Frames[i-1], r.Frames[i]
		if a.Step == b.Step && (a.Function == caller && b.Function == callee) {
			return isTrue("step %d shows the stack", a.Step)
		}
	}
	file := ""
	if strings.Contains(c.Caller, "::") {
		file, _, _ = strings.Cut(c.Caller, "::")
	}
	defs := r.definitions(file, caller)
	complete := len(defs) > 0
	for _, d := range defs {
		text, whole := r.body(d)
		for _, line := range text[min(1, len(text)):] {
			if callsName(line, callee) {
				return isTrue("step %d shows the source", d.Step)
			}
		}
		complete = complete && whole && !slices.ContainsFunc(text, func(l string) bool { return strings.Contains(l, callee) })
	}
	if complete {
		return isFalse("its source does not name %s", callee)
	}
	return unchecked("no step shows the call")
}

// callsName reports whether a line of source contains a call of a name.
func callsName(line, name string) bool {
	for rest := line; ; {
		at := strings.Index(rest, name)
		if at < 0 {
			return false
		}
		after := strings.TrimLeft(rest[at+len(name):], " ")
		if (at == 0 || !isWordByte(rest[at-1])) && strings.HasPrefix(after, "(") && !strings.HasSuffix(strings.TrimRight(rest[:at], " "), "def") {
			return true
		}
		rest = rest[at+len(name):]
	}
}

// checkExecuted looks for stops, frames and tracebacks at a line, for values that only this line assigns, and for
// breakpoints at the line that were not hit.
func (r *Record) checkExecuted(c schemas.Claim) verdict {
	want, opposite := isTrue, isFalse
	if c.Kind == schemas.ClaimNotExecuted {
		want, opposite = isFalse, isTrue
	}
	for i, s := range r.Stops {
		if s.Line == c.Line && (c.File == "" || sameFile(c.File, s.File)) && i+1 < len(r.Stops) && r.Stops[i+1].Run == s.Run {
			return want("step %d stops there", s.Step)
		}
	}
	l, ok := r.line(c.File, c.Line)
	if !ok {
		return unchecked("no step shows whether the line ran")
	}
	for i, f := range r.Frames {
		if f.Line == c.Line && f.File == l.File && i+1 < len(r.Frames) && r.Frames[i+1].Step == f.Step {
			return want("step %d shows it on the stack", f.Step)
		}
	}
	for _, t := range r.Tests {
		for _, result := range t.Results {
			if slices.Contains(result.Places, Place{l.File, l.Number}) {
				return want("a traceback shows it")
			}
		}
	}
	if v := r.assignedBy(l); v != nil {
		return want("%s is %s, which only this line assigns", v.Expression, short(v.Text))
	}
	for _, p := range r.session.points {
		if p.File == l.File && p.Line == l.Number && p.Enabled && p.Condition == "" && p.Hits == 0 && r.session.stop < 0 && r.session.run > 0 {
			return opposite("its breakpoint was not hit")
		}
	}
	return unchecked("no step shows whether the line ran")
}

var (
	assignmentTo  = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*(?:[-+*/]|//)?=[^=]`)
	signatureEnd  = regexp.MustCompile(`:\s*(?:#.*)?$`)
	numberLiteral = regexp.MustCompile(`^-?(?:\d+\.?\d*|\.\d+)\s*(?:#.*)?$`)
)

// assignedBy returns a printed value of the variable that a line assigns, if no other line of the function can have
// given it this value: the variable is not a parameter, and the other assignments, of which there must be at least
// one, assign numbers that differ from the value. It returns nil if this is not known.
func (r *Record) assignedBy(l Line) *Value {
	m := assignmentTo.FindStringSubmatch(l.Text)
	if m == nil {
		return nil
	}
	v := r.latest(m[1])
	if v == nil || v.Stop < 0 || r.Stops[v.Stop].File != l.File || v.Up != 0 {
		return nil
	}
	var text []string
	for _, d := range r.definitions(l.File, r.Stops[v.Stop].Function) {
		if lines, _ := r.body(d); d.Number < l.Number && d.Number+len(lines) > l.Number {
			text = slices.Delete(lines, l.Number-d.Number, l.Number-d.Number+1)
		}
	}
	name := regexp.MustCompile(`\b` + m[1] + `\b`)
	numbers, inSignature := 0, true
	for _, line := range text {
		before, after, assigns := strings.Cut(line, "=")
		switch {
		case !name.MatchString(line):
		case inSignature: // a parameter
			return nil
		case assigns && !strings.HasPrefix(after, "=") && name.MatchString(before):
			names, values := metrics.SplitTop(before, ',', false), metrics.SplitTop(after, ',', false)
			at := slices.Index(names, m[1])
			if at < 0 || len(values) != len(names) || !numberLiteral.MatchString(values[at]) || sameValue(values[at], v.Text) {
				return nil
			}
			numbers++
		case strings.Contains(line, "for ") || strings.Contains(line, " as ") || strings.Contains(line, "global ") || strings.Contains(line, ":="):
			return nil
		}
		inSignature = inSignature && !signatureEnd.MatchString(line)
	}
	if numbers == 0 {
		return nil
	}
	return v
}
