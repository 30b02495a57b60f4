package write

import (
	"slices"
	"strings"
)

// Kinds of statements.
const (
	conditionStatement = "condition" // if, elif, while and assert
	returnStatement    = "return"
	assignStatement    = "assign"
	updateStatement    = "update" // an augmented assignment
	loopStatement      = "loop"   // for
	otherStatement     = "other"
)

// statement is a statement of Python, or the head of a compound one.
type statement struct {
	kind   string
	text   string  // without indentation
	tokens []token // of text
	// first and last are the first and the last token of the expression whose value the statement uses: the condition,
	// the returned or assigned value, the iterable of a loop, or a whole expression statement. If last < first, the
	// statement has no such expression.
	first, last int
	target      string // of an assignment; of a loop, its variables
}

// parseStatement parses the text of a statement. ok is false for text that it cannot tokenize or whose brackets do
// not match, and for definitions.
func parseStatement(text string) (s statement, ok bool) {
	text = strings.TrimSpace(text)
	tokens, ok := tokenize(text)
	if !ok || len(tokens) == 0 || !isBalanced(tokens) || tokens[0].is("def", "class", "async", "@", "import", "from", "global", "nonlocal") {
		return statement{}, false
	}
	s = statement{kind: otherStatement, text: text, tokens: tokens, last: len(tokens) - 1}
	switch head := tokens[0]; {
	case head.is("if", "elif", "while"):
		s.kind, s.first, s.last = conditionStatement, 1, s.top(1, ":")-1
	case head.is("assert"):
		s.kind, s.first, s.last = conditionStatement, 1, s.top(1, ",")-1
	case head.is("return"):
		s.kind, s.first = returnStatement, 1
	case head.is("for"):
		if in := s.top(1, "in"); in < len(tokens) {
			s.kind, s.target = loopStatement, s.source(1, in-1)
			s.first, s.last = in+1, s.top(in+1, ":")-1
		}
	case head.is("raise", "del", "with", "try", "except", "finally", "else", "pass", "break", "continue", "yield", "await"):
		s.last = -1
	default:
		s.assignment()
	}
	return s, true
}

// isBalanced reports whether the brackets of tokens match.
func isBalanced(tokens []token) bool {
	var open []byte
	for _, t := range tokens {
		switch {
		case t.is("(", "[", "{"):
			open = append(open, t.text[0])
		case t.is(")", "]", "}"):
			if len(open) == 0 || strings.IndexByte("([{", open[len(open)-1]) != strings.IndexByte(")]}", t.text[0]) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

// assignment recognizes an assignment, possibly augmented or with an annotation.
func (s *statement) assignment() {
	for i := s.top(0, "="); i < len(s.tokens); i = s.top(i+1, "=") {
		s.kind, s.first = assignStatement, i+1
	}
	if s.kind == assignStatement {
		end := s.top(0, "=") - 1
		if colon := s.top(0, ":"); colon < end {
			end = colon - 1
		}
		s.target = s.source(0, end)
		return
	}
	for i, t := range s.tokens {
		if t.kind == operatorToken && len(t.text) > 1 && strings.HasSuffix(t.text, "=") && !t.is("==", "!=", "<=", ">=", ":=") && s.depth(i) == 0 {
			s.kind, s.first, s.target = updateStatement, i+1, s.source(0, i-1)
		}
	}
}

// depth returns the number of brackets around a token.
func (s *statement) depth(at int) int {
	depth := 0
	for _, t := range s.tokens[:at] {
		depth += t.nesting()
	}
	return depth
}

// top returns the index of the first token with a text outside of brackets, from an index on, or the number of tokens.
func (s *statement) top(from int, text string) int {
	depth, lambda := 0, 0
	for i := from; i < len(s.tokens); i++ {
		t := s.tokens[i]
		switch {
		case t.is(text) && depth == 0 && lambda == 0:
			return i
		case t.is("(", "[", "{"):
			depth++
		case t.is(")", "]", "}"):
			depth--
		case t.is("lambda") && depth == 0:
			lambda++
		case t.is(":") && lambda > 0 && depth == 0:
			lambda--
		}
	}
	return len(s.tokens)
}

// source returns the text from one token to another.
func (s *statement) source(first, last int) string {
	if first > last || first >= len(s.tokens) {
		return ""
	}
	return s.text[s.tokens[first].at:s.tokens[last].end]
}

// expression returns the expression whose value the statement uses, or "".
func (s *statement) expression() string { return s.source(s.first, s.last) }

// isInside reports whether a token belongs to the expression.
func (s *statement) isInside(i int) bool { return s.first <= i && i <= s.last }

// linesToFirst returns how many lines below the beginning of the statement Python runs the first part of it. An opening
// parenthesis, and "not" in a condition, run nothing.
func (s *statement) linesToFirst() int {
	if s.kind == otherStatement || s.kind == updateStatement || s.last < s.first {
		return 0
	}
	i := s.first
	for i < s.last && s.tokens[i].is("(", "not") {
		i++
	}
	if slices.ContainsFunc(s.tokens[s.first:s.last], func(t token) bool { return t.is("for") }) {
		return 0
	}
	return strings.Count(s.text[:s.tokens[i].at], "\n")
}
