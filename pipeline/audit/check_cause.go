package audit

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// CauseShown is why a cause is unchecked if observations show its line and its reason.
const CauseShown = "the debugger shows the reason at this line, but no observation decides whether it causes the failure"

// checkCause checks what a stated cause says about the run: that the line belongs to the function, that the debugger
// stopped there, and that it showed the reason, such as "a + b is 3". The cause is false if an observation shows the
// opposite. It is never true, because observations do not decide what causes a failure.
func (r *Record) checkCause(c schemas.Claim) verdict {
	if c.Line == 0 || c.File == "" {
		return unchecked("observations do not decide this")
	}
	var stops []int
	function := ""
	for i, s := range r.Stops {
		if sameFile(c.File, s.File) && s.Event != "exception" && r.isInStatement(s, c.Line) {
			stops = append(stops, i)
			function = s.Function
		}
	}
	if c.Function != "" && bareName(c.Function) != function && r.isElsewhere(c) {
		return isFalse("the line is not in %s", short(c.Function))
	}
	switch {
	case len(stops) == 0:
		return unchecked("the debugger has not stopped at this line")
	case c.Reason == "":
		return unchecked(CauseShown)
	}
	return r.checkReason(c.Reason, stops)
}

// isElsewhere reports whether the line of a claim is outside of all definitions of the function, which were shown to their ends.
func (r *Record) isElsewhere(c schemas.Claim) bool {
	defs := r.definitions(c.File, bareName(c.Function))
	for _, d := range defs {
		text, whole := r.body(d)
		isIn := c.Line >= d.Number && c.Line < d.Number+len(text)
		if isIn || !whole || r.edited(d.File) {
			return false
		}
	}
	return len(defs) > 0
}

// isInStatement reports whether the statement at a stop contains a line: its first one, or one that continues it.
func (r *Record) isInStatement(s Stop, line int) bool {
	const most = 40 // lines
	text := ""
	for n := s.Line; n < line && n < s.Line+most; n++ {
		l, _ := r.line(s.File, n)
		text += l.Text + "\n"
		open := 0
		for _, open = range metrics.Unquoted(text, false) {
		}
		if open <= 0 && !strings.HasSuffix(l.Text, `\`) {
			return false
		}
	}
	return s.Line <= line && line < s.Line+most
}

// checkReason compares a reason with what the debugger showed at some stops at a statement, and at the next ones.
func (r *Record) checkReason(reason string, stops []int) verdict {
	out := unchecked("no step shows the reason at this line")
	const is = " is "
	for at := 0; ; at += len(is) { // the expression or its value may contain the word, too
		next := strings.Index(reason[at:], is)
		if next < 0 {
			return out
		}
		at += next
		for _, i := range stops {
			switch v := r.computes(i, reason[:at], reason[at+len(is):]); v.is {
			case schemas.ClaimTrue:
				return unchecked(CauseShown)
			case schemas.ClaimFalse:
				out = v
			}
		}
	}
}

// computes checks that the statement at a stop computes a value: the debugger printed the expression or a tuple's parts
// there, or the next stop shows the result.
func (r *Record) computes(at int, expression, value string) verdict {
	out, key := unchecked("it was not printed"), expressionKey(expression)
	for _, v := range r.Values {
		switch {
		case v.Stop != at || expressionKey(v.Expression) != key:
		case sameValue(value, v.Text):
			return isTrue("step %d prints it", v.Step)
		case comparable(value, v.Text) && !strings.HasPrefix(v.Text, "<"):
			out = isFalse("step %d prints %s", v.Step, short(v.Text))
		}
	}
	for _, e := range r.Errors {
		if e.Stop == at && expressionKey(e.Expression) == key && strings.Contains(e.Text, value) {
			return isTrue("step %d shows the error", e.Step)
		}
	}
	if names, values := parts(expression), parts(value); len(names) > 1 && len(names) == len(values) {
		all := isTrue("all parts were printed")
		for i := range names {
			if v := r.computes(at, names[i], values[i]); all.is != schemas.ClaimFalse && v.is != schemas.ClaimTrue {
				all = v
			}
		}
		return all
	}
	if r.results(at, value) {
		return isTrue("the next stop shows it")
	}
	return out
}

// results reports whether the stop after a statement shows its result: what the function returns, the error, or what the
// statement assigned or changed.
func (r *Record) results(at int, value string) bool {
	s := r.Stops[at]
	next := at + 1
	for next < len(r.Stops) && r.Stops[next].Event == "line" && r.Stops[next].Line > s.Line && r.isInStatement(s, r.Stops[next].Line) {
		next++ // a statement of several lines can stop at each of them
	}
	if next == len(r.Stops) || r.Stops[next].Run != s.Run || r.Stops[next].Function != s.Function {
		return false
	}
	line, _ := r.line(s.File, s.Line)
	text := codeKey(line.Text)
	if n := r.Stops[next]; n.Event == "exception" && r.shown(value) || strings.HasPrefix(text, "return") && n.Returns != "" && sameValue(value, n.Returns) {
		return true
	}
	target, _, _ := strings.Cut(text, "=")
	return slices.ContainsFunc(r.Values, func(v Value) bool {
		return v.Stop == next && sameValue(value, v.Text) && slices.ContainsFunc(parts(target), func(part string) bool {
			rest, ok := strings.CutPrefix(part, expressionKey(v.Expression)) // of rates[name], rates
			return ok && firstWord(rest) == ""
		})
	})
}
