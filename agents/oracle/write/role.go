package write

import (
	"fmt"
	"slices"
	"strings"
)

// role says what the statement of a line does for its function, up to a colon.
func (n *Notes) role(f Function, st Placed) string {
	if frames := n.Test.Frames; len(frames) > 0 && frames[len(frames)-1] == st.Place {
		return fmt.Sprintf("The traceback ends in line %d:", st.Line)
	}
	target := oneLine(st.target)
	if line := n.failsWith(f, target); line > 0 && line != st.Line {
		return fmt.Sprintf("The error comes from line %d, which uses `%s`, and line %d sets that:", line, target, st.Line)
	}
	switch {
	case st.tokens[0].is("while"):
		return fmt.Sprintf("Line %d decides whether the loop goes on:", st.Line)
	case st.kind == conditionStatement && !st.tokens[0].is("assert"):
		return fmt.Sprintf("Line %d decides %s:", st.Line, n.decides(f, st))
	case st.kind == returnStatement && n.returns(f) > 1:
		return fmt.Sprintf("Line %d is one of the lines at which `%s` returns:", st.Line, f.Name)
	case st.kind == returnStatement && st.first <= st.last:
		return fmt.Sprintf("Line %d computes what `%s` returns:", st.Line, f.Name)
	case st.kind == assignStatement && n.isReturned(f, target):
		return fmt.Sprintf("The result of `%s` depends on `%s`, which line %d sets:", f.Name, target, st.Line)
	case st.kind == updateStatement && n.isReturned(f, target):
		return fmt.Sprintf("The result of `%s` depends on `%s`, which line %d changes:", f.Name, target, st.Line)
	case st.kind == assignStatement && !strings.Contains(target, "`"):
		return fmt.Sprintf("Line %d sets `%s`:", st.Line, target)
	case st.kind == updateStatement:
		return fmt.Sprintf("Line %d changes `%s`:", st.Line, target)
	case st.kind == loopStatement:
		return fmt.Sprintf("Line %d decides what the loop runs over:", st.Line)
	}
	return fmt.Sprintf("Line %d is", st.Line)
}

// failsWith returns the line of a function at which the traceback ends, if it uses a name, or 0.
func (n *Notes) failsWith(f Function, name string) int {
	if len(n.Test.Frames) == 0 || name == "" {
		return 0
	}
	at := n.Test.Frames[len(n.Test.Frames)-1]
	if g, ok := n.FunctionAt(at); !ok || g.Place != f.Place {
		return 0
	}
	tokens, _ := tokenize(n.text(at))
	if !slices.ContainsFunc(tokens, func(t token) bool { return t.kind == nameToken && t.text == name }) {
		return 0
	}
	return at.Line
}

// decides says what a condition decides, by the first statement of its block.
func (n *Notes) decides(f Function, st Placed) string {
	for _, first := range n.statements(f) {
		if first.Line <= st.last {
			continue
		}
		if n.indent(first.Place) <= n.indent(st.Place) {
			break
		}
		target := oneLine(first.target)
		switch {
		case first.tokens[0].is("raise"):
			return fmt.Sprintf("whether `%s` raises an error", f.Name)
		case first.tokens[0].is("yield"):
			return fmt.Sprintf("whether `%s` yields a value", f.Name)
		case first.tokens[0].is("break"):
			return "whether the loop ends"
		case first.tokens[0].is("continue"):
			return "whether the loop continues with the next value"
		case first.kind == returnStatement:
			return fmt.Sprintf("whether `%s` returns in line %d", f.Name, first.Line)
		case (first.kind == assignStatement || first.kind == updateStatement) && !strings.Contains(target, "`"):
			return fmt.Sprintf("whether `%s` changes in line %d", target, first.Line)
		}
		break
	}
	return fmt.Sprintf("what `%s` does next", f.Name)
}

// returns counts the return statements of a function.
func (n *Notes) returns(f Function) int {
	return len(slices.DeleteFunc(slices.Clone(n.statements(f)), func(st Placed) bool { return st.kind != returnStatement }))
}

// isReturned reports whether a function returns, or yields, an expression with a name.
func (n *Notes) isReturned(f Function, name string) bool {
	return slices.ContainsFunc(n.statements(f), func(st Placed) bool {
		isEnd := st.kind == returnStatement || st.tokens[0].is("yield")
		return isEnd && slices.ContainsFunc(st.tokens, func(t token) bool { return t.kind == nameToken && t.text == name })
	})
}
