package selection

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noField    = regexp.MustCompile(`^undefined field '([^']*)'`)
	notWord    = regexp.MustCompile(`\bnot\s*$`)
	noOverload = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
)

// explain returns the first error in an expression as an ExprError.
func explain(expr string, lib *library, issues *cel.Issues) error {
	first := issues.Errors()[0]
	e := &ExprError{Expr: expr, Line: first.Location.Line(), Column: first.Location.Column()}
	names := lib.names()
	if e.char() == '(' { // CEL reports a call at its parenthesis; only predicates can be called
		names = slices.Collect(maps.Keys(lib.byName))
		slices.Sort(names)
	}
	e.What = explainCEL(first.Message, names)
	if lines := strings.Split(expr, "\n"); strings.HasPrefix(first.Message, "Syntax error: extraneous input") && e.Line <= len(lines) {
		if before := string([]rune(lines[e.Line-1])[:min(e.Column, len([]rune(lines[e.Line-1])))]); notWord.MatchString(before) {
			e.What = "write ! instead of \"not\""
		}
	}
	return e
}

// explainCEL rewords an error message of CEL in the terms of selections.
func explainCEL(message string, names []string) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("there is no column, predicate or function %q%s", m[1], didYouMean(m[1], names))
	}
	if m := noField.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("table steps has no column %q%s", m[1], didYouMean(m[1], columnNames(arrowrec.Steps)))
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		name, ok := operators.FindReverse(m[1])
		if !ok || name == "" {
			name = strings.Trim(m[1], "_@")
		}
		hint := ""
		if strings.Contains(m[2], "null") {
			hint = ": use known(column) to test for null"
		}
		if m[2] == "(double, int)" || m[2] == "(int, double)" {
			hint = ": write whole numbers as 1.0 to compare them with fractions"
		}
		return fmt.Sprintf("%s does not take %s%s", name, m[2], hint)
	}
	switch {
	case strings.Contains(message, "mismatched input 'and'"), strings.Contains(message, "extraneous input 'and'"):
		return "write && instead of \"and\""
	case strings.Contains(message, "token recognition error at: '@'"):
		return "write pass_at(k) instead of pass@k, such as pass_at(4) >= 0.5"
	case strings.Contains(message, "mismatched input 'or'"), strings.Contains(message, "extraneous input 'or'"):
		return "write || instead of \"or\""
	}
	if strings.Contains(message, "input '<EOF>'") {
		return "the expression ends too early"
	}
	message, _, _ = strings.Cut(strings.TrimPrefix(message, "Syntax error: "), " expecting {")
	return message
}
