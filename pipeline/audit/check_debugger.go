package audit

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
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
		return metrics.SplitTop(text[1:n-1], ',', false)
	}
	return metrics.SplitTop(text, ',', false)
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
