package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// isTrue says which branch a printed value takes as a condition. ok is false if its text does not tell.
func isTrue(text string) (value, ok bool) {
	switch text {
	case "True":
		return true, true
	case "False", "None", "0", "0.0", "''", `""`, "b''", `b""`, "[]", "()", "{}", "set()":
		return false, true
	}
	tokens, whole := tokenize(text)
	if !whole || len(tokens) == 0 {
		return false, false
	}
	isLiteral := tokens[0].kind == stringToken || tokens[0].kind == numberToken || tokens[0].is("[", "{", "(", "-")
	return isLiteral, isLiteral
}

// branch says what a condition with a value makes the program do, as a part of a sentence, or "".
func (s *statement) branch(value Value) string {
	holds, ok := isTrue(value.Text)
	if !ok || value.IsError || s.kind != conditionStatement || s.tokens[0].is("assert") {
		return ""
	}
	after := s.tokens[s.last+1:] // ":" and what follows on the same line
	switch {
	case s.tokens[0].is("while") && holds:
		return "the loop goes on"
	case s.tokens[0].is("while"):
		return "the loop ends"
	case holds && len(after) > 1 && after[1].is("return"):
		return "the function returns at once"
	case holds && len(after) > 1 && after[1].is("raise"):
		return "it raises the error"
	case holds:
		return "the program takes this branch"
	}
	return "the program skips this branch"
}

// sides returns the two values that the failing test compares, as its report prints them.
func (n *Notes) sides() (left, right string, ok bool) {
	if n.Test == nil {
		return "", "", false
	}
	text := strings.TrimPrefix(strings.TrimPrefix(n.Test.Message, "AssertionError: "), "assert ")
	tokens, whole := tokenize(text)
	depth := 0
	var operator *token
	for i, t := range tokens {
		depth += t.nesting()
		switch {
		case depth != 0:
		case operator == nil && t.is("==", "!=") && i > 0 && i+1 < len(tokens):
			operator = &tokens[i]
		case operator != nil && t.is(",", ":"): // the message of the assertion follows
			return strings.TrimSpace(text[:operator.at]), strings.TrimSpace(text[operator.end:t.at]), true
		}
	}
	if operator == nil || !whole {
		return "", "", false
	}
	return strings.TrimSpace(text[:operator.at]), strings.TrimSpace(text[operator.end:]), true
}

// expected returns the two values that the failing test compares, if the test contains exactly one of them, which it expects.
func (n *Notes) expected() (got, want string, ok bool) {
	plain := func(text string) string { return strings.ReplaceAll(strings.Join(strings.Fields(text), ""), `"`, "'") }
	left, right, ok := n.sides()
	if !ok || !isShort(left) || !isShort(right) {
		return "", "", false
	}
	test := plain(n.join(n.Test.At.File, n.testLines()))
	switch inLeft, inRight := strings.Contains(test, plain(left)), strings.Contains(test, plain(right)); {
	case inRight && !inLeft:
		return left, right, true
	case inLeft && !inRight:
		return right, left, true
	}
	return "", "", false
}

// reports returns the claim that the followed test reports its error.
func (n *Notes) reports() schemas.Claim {
	return schemas.Claim{Kind: schemas.ClaimReports, Test: n.Test.ID, Message: n.Test.Message}
}

// compares says that the failing test compares a wrong value with another one, or returns an empty message. instead is
// the value with a change to the program, or "".
func (n *Notes) compares(value, instead string) message {
	left, right, ok := n.sides()
	if !ok || value == "" {
		return message{}
	}
	reports := n.reports()
	both := []string{left, right}
	got, want, expects := n.expected()
	switch {
	case !slices.Contains(both, value) || left == right:
		return message{}
	case expects && value == got && instead == want:
		return say(n.words("The second is what the test expects.", "The test expects the second one."), reports)
	case expects && value == got:
		return say(fmt.Sprintf("The test expects `%s`.", want), reports)
	case instead != "" && slices.Contains(both, instead) && instead != value:
		return say(n.words("These are the two values that the test compares.", "The test compares exactly these two values."), reports)
	case left == value:
		return say(fmt.Sprintf("The test compares `%s` with `%s`.", left, right), reports)
	}
	return say(fmt.Sprintf("The test compares `%s` with `%s`.", right, left), reports)
}
