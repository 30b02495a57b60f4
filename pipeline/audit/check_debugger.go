package audit

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// latest returns the value of an expression that was printed last, at the current stop if possible, or nil.
func (r *Record) latest(expression string) *Value {
	var found *Value
	key := expressionKey(expression)
	for i := len(r.Values) - 1; i >= 0; i-- {
		v := &r.Values[i]
		if expressionKey(v.Expression) != key {
			continue
		}
		if v.Stop == r.session.stop {
			return v
		}
		if found == nil {
			found = v
		}
	}
	return found
}

// expressionKey makes expressions equal that differ only in spaces and quotes.
func expressionKey(expression string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case ' ', '\t', '\n':
			return -1
		case '"':
			return '\''
		}
		return c
	}, expression)
}

// checkValue compares a value with those that the debugger printed. A tuple of expressions is compared part by
// part.
func (r *Record) checkValue(expression, value string) verdict {
	v := r.latest(expression)
	if names := parts(expression); v == nil && len(names) > 1 {
		if values := parts(value); len(values) == len(names) {
			out := isTrue("all parts were printed")
			for i := range names {
				switch part := r.checkValue(names[i], values[i]); part.is {
				case schemas.ClaimFalse:
					return part
				case schemas.ClaimUnchecked:
					out = part
				}
			}
			return out
		}
	}
	switch {
	case v == nil:
		return unchecked("%s was not printed", short(expression))
	case sameValue(value, v.Text) && v.Stop == r.session.stop:
		return isTrue("step %d prints it", v.Step)
	case sameValue(value, v.Text):
		return isTrue("step %d prints it, at an earlier stop", v.Step)
	case v.Stop != r.session.stop || v.Stop < 0:
		return unchecked("%s was last printed at another stop", short(expression))
	case strings.HasPrefix(v.Text, "<") || !comparable(value, v.Text):
		return unchecked("step %d prints %s", v.Step, short(v.Text))
	}
	return isFalse("step %d prints %s", v.Step, short(v.Text))
}

// parts returns the parts of a tuple, or nil.
func parts(text string) []string {
	if n := len(text); n > 2 && text[0] == '(' && text[n-1] == ')' {
		return splitTop(text[1 : n-1])
	}
	return splitTop(text)
}

// splitTop splits a text at the commas outside of brackets and quotes.
func splitTop(text string) []string {
	var out []string
	depth, quote, start := 0, byte(0), 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == ',' && depth == 0:
			out, start = append(out, strings.TrimSpace(text[start:i])), i+1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

// sameValue reports whether two texts show the same value. Quotes do not matter, 13.80 is the same as
// Decimal('13.80'), and "..." at the end of a text stands for any rest.
func sameValue(claimed, printed string) bool {
	a, b := plainValue(claimed), plainValue(printed)
	if rest, ok := strings.CutSuffix(a, "..."); ok && len(rest) > 2 {
		return strings.HasPrefix(b, rest) || strings.HasPrefix(innerValue(b), rest)
	}
	return a == b || a == innerValue(b)
}

func plainValue(text string) string {
	text = strings.Join(strings.Fields(strings.Trim(text, "` ")), " ")
	if n := len(text); n > 1 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return strings.ReplaceAll(text, `"`, `'`)
}

// innerValue returns the argument of a representation such as Decimal('13.80'), or the text itself.
func innerValue(text string) string {
	open := strings.IndexByte(text, '(')
	if open <= 0 || !strings.HasSuffix(text, ")") || !isIdentifier(text[:open]) {
		return text
	}
	return plainValue(text[open+1 : len(text)-1])
}

// comparable reports whether two texts that differ show different values. A number and another kind of value
// may be two forms of one value.
func comparable(claimed, printed string) bool {
	a, b := plainValue(claimed), plainValue(printed)
	return valueKind(a) == valueKind(b) || isConstant(a) && isConstant(b) || isConstant(a) && valueKind(b) == 'n' || isConstant(b) && valueKind(a) == 'n'
}

func isConstant(text string) bool { return text == "None" || text == "True" || text == "False" }

func valueKind(text string) byte {
	switch {
	case text == "":
		return 's'
	case '0' <= text[0] && text[0] <= '9', text[0] == '-', text[0] == '.':
		return 'n'
	case strings.IndexByte("([{", text[0]) >= 0:
		return text[0]
	case isConstant(text):
		return 'c'
	}
	return 's'
}

// current returns the current stop, or nil.
func (r *Record) current() *Stop {
	if r.session.stop < 0 {
		return nil
	}
	return &r.Stops[r.session.stop]
}

func (s *Stop) matches(c schemas.Claim) bool {
	return (c.File == "" || sameFile(c.File, s.File)) && (c.Line == 0 || c.Line == s.Line) && (c.Function == "" || bareName(c.Function) == s.Function)
}

// sameFile reports whether a text names a file, perhaps only by the end of its path.
func sameFile(claimed, file string) bool {
	return claimed == file || strings.HasSuffix(file, "/"+claimed)
}

// bareName returns the last part of a dotted name.
func bareName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

func (r *Record) checkStop(c schemas.Claim) verdict {
	s := r.current()
	if s == nil {
		if slices.ContainsFunc(r.Stops, func(s Stop) bool { return s.matches(c) }) && c.Hit == 0 {
			return isTrue("an earlier stop was there")
		}
		return unchecked("the program is not stopped")
	}
	if !s.matches(c) {
		if slices.ContainsFunc(r.Stops, func(s Stop) bool { return s.matches(c) }) {
			return unchecked("an earlier stop was there, and the current one is at %s:%d in %s", s.File, s.Line, s.Function)
		}
		return isFalse("the program is stopped at %s:%d in %s", s.File, s.Line, s.Function)
	}
	if c.Hit > 0 {
		n := 0
		for _, other := range r.Stops {
			if other.Run == s.Run && other.File == s.File && other.Line == s.Line {
				n++
			}
		}
		switch {
		case c.Hit == n || c.Hit == s.Hit:
			return isTrue("stop %d at this line", n)
		case s.Hit == 0:
			return unchecked("the hit is unknown")
		}
		return isFalse("stop %d at this line, which has run %d times", n, s.Hit)
	}
	return isTrue("the program is stopped at %s:%d in %s", s.File, s.Line, s.Function)
}

func (r *Record) checkBreakpoint(c schemas.Claim) verdict {
	for _, p := range r.session.points {
		if sameFile(c.File, p.File) && p.Line == c.Line {
			return isTrue("the debugger lists it")
		}
	}
	if r.session.points == nil {
		return unchecked("the breakpoints are unknown")
	}
	return isFalse("the debugger does not list it")
}

// checkReached looks for a stop in the function whose listed stack has the caller.
func (r *Record) checkReached(c schemas.Claim) verdict {
	function, caller := bareName(c.Function), bareFunction(c.Caller)
	stopped := false
	for at, s := range r.Stops {
		if s.Function != function || c.File != "" && !sameFile(c.File, s.File) {
			continue
		}
		stopped = true
		reached := caller == ""
		for _, f := range r.Frames {
			reached = reached || f.Stop == at && f.Function == caller
		}
		switch {
		case reached && c.Kind == schemas.ClaimReaches:
			return isTrue("the stack of the stop in step %d shows it", s.Step)
		case reached:
			return isFalse("the program stopped there in step %d", s.Step)
		}
	}
	switch {
	case c.Kind == schemas.ClaimNotReached && !stopped:
		return isTrue("no step shows such a stop")
	case stopped:
		return unchecked("no stack shows who made the call")
	}
	return unchecked("no stop in this function")
}

// bareFunction returns the function of a test id, or the last part of a name.
func bareFunction(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return bareName(bareTest(name))
}

func (r *Record) checkReturn(c schemas.Claim) verdict {
	if v := r.latest(c.Function); v != nil {
		return r.checkValue(c.Function, c.Value)
	}
	name := bareName(c.Function)
	for i := len(r.Stops) - 1; i >= 0; i-- {
		if s := r.Stops[i]; s.Function == name && s.Returns != "" {
			switch {
			case sameValue(c.Value, s.Returns):
				return isTrue("step %d shows it", s.Step)
			case comparable(c.Value, s.Returns) && i == r.session.stop:
				return isFalse("step %d shows %s", s.Step, short(s.Returns))
			}
		}
	}
	return unchecked("no step shows what it returns")
}
