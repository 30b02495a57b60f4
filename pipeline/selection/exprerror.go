package selection

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// ExprError is an error at a position in an expression. Line counts from 1; Column counts
// characters from 0.
type ExprError struct {
	Expr         string
	Line, Column int
	What         string
}

// char returns the character at the position of the error; 0 at the end of the expression.
func (e *ExprError) char() rune {
	lines := strings.Split(e.Expr, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return 0
	}
	if line := []rune(lines[e.Line-1]); e.Column >= 0 && e.Column < len(line) {
		return line[e.Column]
	}
	return 0
}

func (e *ExprError) Error() string {
	lines := strings.Split(e.Expr, "\n")
	where := fmt.Sprintf("character %d", e.Column+1)
	if len(lines) > 1 {
		where = fmt.Sprintf("line %d, %s", e.Line, where)
	}
	if e.Line < 1 || e.Line > len(lines) {
		return e.What
	}
	// Show only part of a long line.
	line, column := []rune(strings.ReplaceAll(lines[e.Line-1], "\t", " ")), min(max(e.Column, 0), len([]rune(lines[e.Line-1])))
	if from := column - 60; from > 0 {
		line, column = append([]rune("…"), line[from:]...), 61
	}
	if len(line) > 120 {
		line = append(line[:119:119], '…')
	}
	return fmt.Sprintf("%s, at %s:\n  %s\n  %s^", e.What, where, string(line), strings.Repeat(" ", column))
}

// offsetError is an error at an offset in an expression, in characters.
type offsetError struct {
	offset int32
	text   string
}

// exprError converts e to an ExprError.
func (e *offsetError) exprError(expr string) error {
	line, column := 1, 0
	for i, r := range []rune(expr) {
		if i == int(e.offset) {
			break
		}
		if column++; r == '\n' {
			line, column = line+1, 0
		}
	}
	return &ExprError{Expr: expr, Line: line, Column: column, What: e.text}
}

// didYouMean returns the end of a message that suggests a similar name; "" if there is none.
func didYouMean(name string, names []string) string {
	similar := nearest.Name(name, names, min(4, max(2, len(name)/2)))
	for _, n := range names {
		if strings.HasSuffix(n, "_"+name) && similar == "" || n == name+"_name" || n == name+"_usd" { // columns that show lists under a shorter name
			similar = n
		}
	}
	if similar != "" {
		return fmt.Sprintf(": did you mean %q?", similar)
	}
	return ""
}
