package audit

import "strings"

// This file compares the texts of values and expressions.

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

// valueKind returns the kind of a value by how its text begins: n for a number, c for a constant (None, True or
// False), the bracket of a container, and s for anything else, such as a text.
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
