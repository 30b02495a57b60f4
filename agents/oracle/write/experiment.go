package write

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxVariants is the number of changes to a statement that the agent considers.
const maxVariants = 600

// change is a variant of a statement in the program.
type change struct {
	variant
	at   Place  // the line that changes
	line string // its new text, with indentation
}

// changes returns the variants of a statement that change one line of it.
func (n *Notes) changes(f Function, st Placed) []change {
	if out, known := n.changed[st.Place]; known {
		return out
	}
	var out []change
	words := n.vocabulary(f)
	words.strings = append(words.strings, n.printedStrings(f, words.strings)...)
	words.constants = n.testConstants()
	for _, name := range slices.Sorted(maps.Keys(bound(st.tokens))) {
		if !slices.Contains(words.names, name) {
			words.names = append(words.names, name)
		}
	}
	variants := st.variants(words)
	old := strings.Split(st.text, "\n")
	for _, v := range variants[:min(len(variants), maxVariants)] {
		lines := strings.Split(v.statement, "\n")
		if len(lines) != len(old) {
			continue
		}
		at := -1
		for i := range lines {
			if lines[i] != old[i] && at < 0 {
				at = i
			} else if lines[i] != old[i] {
				at = len(lines)
			}
		}
		if at < 0 || at == len(lines) {
			continue
		}
		c := change{v, Place{st.File, st.head() + at}, lines[at]}
		if at == 0 {
			first := n.lines[st.File][st.head()]
			c.line = first[:indentOf(first)] + lines[at]
		}
		c.expression, c.original = oneLine(c.expression), oneLine(c.original)
		out = append(out, c)
	}
	if n.changed == nil {
		n.changed = map[Place][]change{}
	}
	n.changed[st.Place] = out
	return out
}

// printedStrings returns the short string literals, other than the known ones, in the values that the debugger has
// printed in a function.
func (n *Notes) printedStrings(f Function, known []string) []string {
	var out []string
	for _, stop := range n.Stops {
		if stop.File != f.File || stop.Function != f.Name {
			continue
		}
		for _, v := range stop.Values {
			tokens, _ := tokenize(v.Text)
			for _, t := range tokens {
				isKnown := func(s string) bool { return unquoted(s) == unquoted(t.text) }
				if t.kind == stringToken && len(t.text) <= 20 && !slices.ContainsFunc(known, isKnown) && !slices.ContainsFunc(out, isKnown) {
					out = append(out, t.text)
				}
			}
		}
	}
	return out
}

// unquoted returns a string literal without its quotes.
func unquoted(literal string) string { return strings.Trim(literal, `"'`) }

// lastStop returns the index of the last stop before a statement, or -1.
func (n *Notes) lastStop(st Placed) int {
	for i, stop := range slices.Backward(n.Stops) {
		if stop.Place == st.Place && stop.Event == "line" {
			return i
		}
	}
	return -1
}

// outcome returns the value that a statement has computed at the last stop before it.
func (n *Notes) outcome(st Placed) (Value, bool) {
	if i := n.lastStop(st); i >= 0 {
		return n.outcomeAt(st, i)
	}
	return Value{}, false
}

// outcomeAt returns the value that a statement has computed at a stop before it, given by its index: as printed before it ran, or
// as its target or the returned value after it.
func (n *Notes) outcomeAt(st Placed, i int) (Value, bool) {
	if v, ok := n.Stops[i].Value(oneLine(st.evaluated())); ok {
		return v, true
	}
	next, ok := n.after(st, i)
	if !ok {
		return Value{}, false
	}
	if next.Event == "exception" && next.Raises != "" {
		return Value{Text: next.Raises, IsError: true}, true
	}
	if next.Event == "return" && st.kind == returnStatement && next.Returns != "" {
		return Value{Text: next.Returns}, true
	}
	v, ok := next.Value(st.target)
	return v, ok && st.kind == assignStatement
}

// after returns the first stop after a run of a statement, in the same call. i is the index of the stop before it. A statement of
// several lines can stop at each of them.
func (n *Notes) after(st Placed, i int) (Stop, bool) {
	for i >= 0 && i+1 < len(n.Stops) && n.follows(i) {
		i++
		if s := n.Stops[i]; s.Event != "line" || s.Line < st.head() || s.Line > st.last || st.head() == st.last {
			return s, true
		}
	}
	return Stop{}, false
}

// changed returns what a statement may change: its target, the variables of a loop, or the object of which it calls a method, or "".
func (s *statement) changed() string {
	switch s.kind {
	case assignStatement, updateStatement, loopStatement:
		return s.target
	case otherStatement:
	default:
		return ""
	}
	callee, _, isCall := strings.Cut(s.text, "(")
	if at := strings.LastIndexByte(callee, '.'); isCall && at > 0 {
		return callee[:at]
	}
	return ""
}

// visible returns what is known of the effect of a statement: the error that it has raised at any of the stops before it, its
// outcome, or what was printed after it of the variable that it changes: in the case of `rates[name] = 1`, rates.
func (n *Notes) visible(st Placed) (Value, bool) {
	for i, stop := range n.Stops[:max(0, len(n.Stops)-1)] {
		if next := n.Stops[i+1]; stop.Place == st.Place && stop.Event == "line" && n.follows(i) && next.Event == "exception" && next.Raises != "" {
			return Value{Text: next.Raises, IsError: true}, true
		}
	}
	if v, ok := n.outcome(st); ok {
		return v, true
	}
	next, _ := n.after(st, n.lastStop(st))
	target := st.changed()
	for _, v := range next.Values {
		if !v.IsError && (v.Expression == target || slices.Contains(splitTuple(target), v.Expression) || strings.HasPrefix(target, v.Expression+"[") || strings.HasPrefix(target, v.Expression+".")) {
			return v, true
		}
	}
	return Value{}, false
}

// sets reports whether an expression uses a name to which a statement assigns, so that it has another value after the statement.
func (s *statement) sets(expression string) bool {
	target := s.changed()
	tokens, _ := tokenize(expression)
	return target != "" && slices.ContainsFunc(splitTuple(target), func(part string) bool {
		base, _, _ := strings.Cut(strings.Trim(part, "()* "), "[")
		base, _, _ = strings.Cut(base, ".")
		return slices.ContainsFunc(tokens, func(t token) bool { return t.kind == nameToken && t.text == base })
	})
}

// follows reports whether the stop after the one at index i is in the same call.
func (n *Notes) follows(i int) bool {
	a, b := n.Stops[i], n.Stops[i+1]
	return !b.byBreakpoint && a.Run == b.Run && a.Function == b.Function && a.Depth == b.Depth && a.File == b.File
}

// tested returns the statement that an experiment can change at the current stop: the one that runs next, or the one
// that has just run, if it has not changed what it uses.
func (n *Notes) tested(f Function, stop Stop) []Placed {
	var out []Placed
	for _, st := range n.statements(f) {
		last := len(n.Stops) - 1
		ran := last > 0 && n.Stops[last-1].Place == st.Place && n.follows(last-1) && n.canRepeat(f, st)
		if st.Place == stop.Place && stop.Event == "line" || ran {
			out = append(out, st)
		}
	}
	return out
}

var caught = regexp.MustCompile(`^\s*except\b.*\bas\s+(\w+)\s*:`)

// canRepeat reports whether the expression of a statement has the same value after the statement has run. The name of an exception is
// deleted at the end of its block.
func (n *Notes) canRepeat(f Function, st Placed) bool {
	for _, line := range n.body(f) {
		if m := caught.FindStringSubmatch(n.lines[f.File][line]); m != nil && slices.Contains(st.words(), m[1]) {
			return false
		}
	}
	return st.canRepeat()
}

// canRepeat reports whether the expression of a statement has the same value after the statement has run.
func (s *statement) canRepeat() bool {
	if s.kind == returnStatement {
		return true
	}
	used := s.source(s.first, s.last)
	return s.kind == assignStatement && !slices.ContainsFunc(splitTuple(s.target), func(target string) bool {
		base, _, _ := strings.Cut(target, "[")
		base = strings.Trim(base, "()* ")
		return slices.Contains(s.words(), base) || strings.Contains(base, ".") && strings.Contains(used, base)
	})
}

// words returns the names in the expression of a statement.
func (s *statement) words() []string {
	var out []string
	for i := s.first; i <= s.last && i < len(s.tokens); i++ {
		if s.tokens[i].kind == nameToken && (i == 0 || !s.tokens[i-1].is(".")) {
			out = append(out, s.tokens[i].text)
		}
	}
	return out
}

// isConstant reports whether an expression has no names.
func isConstant(expression string) bool {
	tokens, _ := tokenize(expression)
	return !slices.ContainsFunc(tokens, func(t token) bool { return t.kind == nameToken })
}

// tryOptions returns the changed expressions that the agent can evaluate at a stop.
func (n *Notes) tryOptions(f Function, stop Stop) []Option {
	var out []Option
	for _, st := range n.tested(f, stop) {
		if _, known := n.outcome(st); !known {
			continue
		}
		for _, c := range n.changes(f, st) {
			x := n.compare(st, c)
			constant := isConstant(c.expression)
			c = c.opens(x.outcome)
			_, failed := stop.Value(c.expression)
			if c.expression == "" || failed || st.Place != stop.Place && st.sets(c.expression) || n.times(c) > 1 || x.differs() || constant || n.hasEffect(f, c.expression) || len(c.expression) > 200 || strings.Contains(c.expression, "`") {
				continue
			}
			out = append(out, Option{Kind: Try, Function: f, Place: c.at, Expression: c.expression, Instead: c.original, Statement: strings.TrimSpace(c.line),
				IsTypical: c.isTypical() && c.fits(st, x.outcome), say: n.afterLearned(n.sayTry(c, stop)), call: pdb("p " + c.expression)})
		}
	}
	return out
}

// InVain reports whether a change of the statement at a stop was tried there and makes no difference.
func (n *Notes) InVain(stop Stop, statement string) bool {
	f, st, ok := n.statementAt(stop.Place)
	return ok && slices.ContainsFunc(n.changes(f, st), func(c change) bool { return strings.TrimSpace(c.line) == statement && c.isEqual(st, stop) })
}

// isEqual reports whether a statement and its change had the same value at a stop.
func (c change) isEqual(st Placed, stop Stop) bool {
	outcome, known := stop.Value(oneLine(st.evaluated()))
	tried, ok := stop.Value(c.expression)
	return known && ok && tried.Text == outcome.Text
}

// differOptions returns the conditions with which the breakpoint stops only where a change makes a difference.
func (n *Notes) differOptions(f Function, stop Stop) []Option {
	if !n.isUnconditional(stop) {
		return nil
	}
	_, st, ok := n.statementAt(stop.Place)
	if !ok {
		return nil
	}
	var out []Option
	for _, c := range n.changes(f, st) {
		if !c.isEqual(st, stop) {
			continue
		}
		condition := fmt.Sprintf("(%s) != (%s)", c.original, c.expression)
		if st.kind == conditionStatement {
			condition = "bool(" + c.original + ") != bool(" + c.expression + ")"
		}
		m := say(n.words("I stop only where the two values differ.", "I make the breakpoint stop only where the two differ."))
		out = append(out, Option{Kind: Narrow, Function: f, Place: stop.Place, Expression: c.original, Instead: c.expression, Statement: strings.TrimSpace(c.line), say: n.afterLearned(m),
			call: pdb(fmt.Sprintf("condition %s %s", stop.breakpoint, condition))})
	}
	return out
}

// endOptions returns the ends of the search: edits that an experiment supports, and a conclusion without an edit.
func (n *Notes) endOptions() []Option {
	if !slices.Contains(n.tools, "edit") {
		return n.handoverOptions()
	}
	var out []Option
	for _, at := range n.stoppedAt() {
		f, st := at.function, at.statement
		for _, c := range n.changes(f, st) {
			x := n.compare(st, c)
			if x.known && (x.differs() || isConstant(c.expression) && c.expression != "") {
				out = append(out, Option{Kind: Edit, Function: f, Place: c.at, Expression: c.expression, Instead: c.original, Statement: strings.TrimSpace(c.line), Tried: x.tried, Raises: x.outcome.IsError,
					say: n.afterLearned(n.sayCause(f, st, x.change, x.outcome, x.value)), call: edit(c)})
			}
		}
		if seen, ok := n.visible(st); ok || isConstant(st.evaluated()) {
			out = append(out, n.explain(f, st, seen), Option{Kind: Conclude, Function: f, Place: st.Place, Last: st.last, Raises: seen.IsError,
				say: n.sayConclusion(f, st, seen), stop: schemas.ExitGaveUp})
		}
	}
	return out
}

// handoverOptions returns the ends of the search of an agent that cannot edit.
func (n *Notes) handoverOptions() []Option {
	var out []Option
	add := func(o Option, ok bool) {
		if ok {
			out = append(out, o)
		}
	}
	for _, at := range n.stoppedAt() {
		f, st := at.function, at.statement
		seen, ok := n.visible(st)
		if !ok && !isConstant(st.evaluated()) {
			continue
		}
		add(n.handOver(f, st, seen, nil, Value{}))
		for _, c := range n.changes(f, st) {
			if x := n.compare(st, c); x.tried && x.value.Text != seen.Text {
				add(n.handOver(f, st, seen, &x.change, x.value))
			}
		}
	}
	return out
}

// edit returns the call that changes a line.
func edit(c change) schemas.ToolCall {
	return schemas.NewToolCall("edit", map[string]any{"path": c.at.File, "start": c.at.Line, "end": c.at.Line, "new_code": c.line})
}
