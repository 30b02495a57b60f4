package write

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// Stop is a place at which the debugger has stopped the program, before the line runs.
type Stop struct {
	Place
	Function  string
	Event     string // line, call, return or exception
	Depth     int
	Run       int    // of the program, from 1
	Entry     string // the command line that runs
	Hit       int    // of the breakpoint at the place in this run, from 1; 0 = unknown
	Condition string // of the breakpoint at the place
	Returns   string // what the function is about to return, as printed
	Raises    string // the exception that is being raised, as printed
	Values    []Value

	byBreakpoint bool
	breakpoint   string // its number
	asked        bool   // the agent has asked for the arguments
}

// Value is what the debugger printed for an expression.
type Value struct {
	Expression, Text string
	IsError          bool // Text is the error
	step             int  // that has printed exactly the expression; 0 = none
}

// isBeforeLine reports whether a line of the function runs next.
func (s *Stop) isBeforeLine() bool { return s.Event == "line" || s.Event == "call" }

// At returns the stop at which the program is paused, or nil.
func (n *Notes) At() *Stop {
	if !n.paused || len(n.Stops) == 0 {
		return nil
	}
	return &n.Stops[len(n.Stops)-1]
}

// breakpoint returns the place of the last breakpoint that the debugger has, if any.
func (n *Notes) breakpoint() Place {
	if len(n.points) == 0 {
		return Place{}
	}
	last := n.points[len(n.points)-1]
	return Place{last.File, last.Line}
}

// Value returns what an expression was at a stop.
func (s *Stop) Value(expression string) (Value, bool) {
	for _, v := range s.Values {
		if v.Expression == expression {
			return v, true
		}
	}
	return Value{}, false
}

// Waits reports whether a breakpoint was set at which the program has not stopped yet, and the program has not ended.
func (n *Notes) Waits() bool {
	return slices.ContainsFunc(n.points, func(p schemas.Breakpoint) bool {
		return !slices.ContainsFunc(n.Stops, func(s Stop) bool { return s.File == p.File && s.Line == p.Line })
	}) && (argument(n.last, "command") != "c" || n.entry != n.testCommand())
}

// WasStopped reports whether the program has stopped at a place.
func (n *Notes) WasStopped(p Place) bool {
	return slices.ContainsFunc(n.Stops, func(s Stop) bool { return s.Place == p })
}

// Reported reports whether the error message of the failing test contains a value, and not as a part of a longer word.
func (n *Notes) Reported(value string) bool {
	if n.Test == nil {
		return false
	}
	isWord := func(text string, i int) bool {
		return i >= 0 && i < len(text) && (isNameStart(text[i]) || isDigit(text[i]))
	}
	for _, line := range n.Test.symptoms {
		for from := 0; value != ""; {
			i := strings.Index(line[from:], value)
			if i < 0 {
				break
			}
			from += i + 1
			begin, end := from-1, from-1+len(value)
			if !(isWord(line, begin-1) && isWord(line, begin)) && !(isWord(line, end) && isWord(line, end-1)) {
				return true
			}
		}
	}
	return false
}

// Runs returns how often the agent has started the program in the debugger.
func (n *Notes) Runs() int { return n.run }

// Continues returns how often the agent has let the program run to the next breakpoint.
func (n *Notes) Continues() int {
	return len(slices.DeleteFunc(slices.Clone(n.Stops), func(s Stop) bool { return !s.byBreakpoint }))
}

// Tries returns how many experiments the agent has made.
func (n *Notes) Tries() int {
	tries := 0
	for _, stop := range n.Stops {
		f, st, ok := n.statementAt(stop.Place)
		if !ok {
			continue
		}
		changes := n.changes(f, st)
		for _, v := range stop.Values {
			if v.Expression != oneLine(st.evaluated()) && slices.ContainsFunc(changes, func(c change) bool { return c.expression == v.Expression }) {
				tries++
			}
		}
	}
	return tries
}

// ShownArguments reports whether the arguments of a function were printed.
func (n *Notes) ShownArguments(f Function) bool {
	return slices.ContainsFunc(n.Stops, func(s Stop) bool { return s.File == f.File && s.Function == f.Name && len(s.Values) > 0 })
}

// Operands returns what the statement at a place uses and was not printed at the current stop, as one expression that prints it, or "".
func (n *Notes) Operands(p Place) string {
	f, st, ok := n.statementAt(p)
	if !ok {
		return ""
	}
	operands := st.operands(n.names(f))
	if stop := n.At(); stop != nil && stop.Place == p {
		operands = slices.DeleteFunc(operands, func(o string) bool {
			_, printed := stop.Value(o)
			return printed || strings.HasPrefix(stop.Condition, o+" == ")
		})
	}
	return strings.Join(operands[:min(len(operands), maxOperands)], ", ")
}

// UsesArguments reports whether the statement at a place uses a parameter of its function, or nothing that the debugger can print.
func (n *Notes) UsesArguments(p Place) bool {
	f, st, ok := n.statementAt(p)
	if !ok {
		return true
	}
	operands, given := st.operands(n.names(f)), n.parameters(f)
	return len(operands) == 0 || slices.ContainsFunc(operands, func(o string) bool { return slices.Contains(given, o) })
}

// Container returns the variable from which the statement at a place takes an element, or "".
func (n *Notes) Container(p Place) string {
	_, st, ok := n.statementAt(p)
	if !ok || st.last < st.Line {
		return ""
	}
	for i, t := range st.tokens {
		if t.is("[") && i > 0 && st.tokens[i-1].kind == nameToken && (i < 2 || !st.tokens[i-2].is(".")) {
			return st.tokens[i-1].text
		}
	}
	return ""
}

// MustTryBefore reports whether an experiment with the statement at a place should come before it runs: it decides what runs next,
// changes what it uses, or has several targets or several lines, which the debugger stops at one after the other.
func (n *Notes) MustTryBefore(p Place) bool {
	f, st, ok := n.statementAt(p)
	return ok && (!n.canRepeat(f, st) || strings.Contains(st.target, ",") || strings.Contains(st.text, "\n"))
}

// Result returns the variable or attribute that the last statement has set, or "".
func (n *Notes) Result() string {
	last := len(n.Stops) - 1
	if last < 1 || !n.follows(last-1) || n.Stops[last].Event != "line" {
		return ""
	}
	if _, st, ok := n.statementAt(n.Stops[last-1].Place); ok && (st.kind == assignStatement || st.kind == updateStatement) {
		return st.target
	}
	return ""
}

// Span returns the last line of the statement that begins at a place.
func (n *Notes) Span(p Place) int {
	if _, st, ok := n.statementAt(p); ok {
		return st.last
	}
	return p.Line
}

// HasOwnFrame reports whether a part of the statement at a place, such as a comprehension, stops at a breakpoint of the statement again.
func (n *Notes) HasOwnFrame(p Place) bool {
	_, st, ok := n.statementAt(p)
	return ok && st.kind != loopStatement && slices.ContainsFunc(st.tokens, func(t token) bool { return t.is("for", "lambda") })
}

// IsShown reports whether a step has shown a line.
func (n *Notes) IsShown(p Place) bool {
	_, shown := n.lines[p.File][p.Line]
	return shown
}

// Evaluated returns the expression whose value the statement at a place uses, or "".
func (n *Notes) Evaluated(p Place) string {
	if _, st, ok := n.statementAt(p); ok {
		return oneLine(st.evaluated())
	}
	return ""
}

// stopped is a statement at which the program has stopped.
type stopped struct {
	function  Function
	statement Placed
}

// stoppedAt returns the statements of the program at which it has stopped, each once.
func (n *Notes) stoppedAt() []stopped {
	var out []stopped
	for _, stop := range n.Stops {
		f, st, ok := n.statementAt(stop.Place)
		if ok && !testcmd.IsTestFile(stop.File) && !slices.ContainsFunc(out, func(s stopped) bool { return s.statement.Place == st.Place }) {
			out = append(out, stopped{f, st})
		}
	}
	return out
}
