package metrics

import (
	"iter"
	"strings"
)

// Unquoted yields the indexes of the bytes of Python text outside of quotes, with the number of brackets that are open after
// each. Angle brackets count if angles is true, because they enclose the representation of many objects.
func Unquoted(text string, angles bool) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		depth, quote := 0, byte(0)
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quote != 0:
				if c == '\\' {
					i++
				} else if c == quote {
					quote = 0
				}
				continue
			case c == '\'' || c == '"':
				quote = c
				continue
			case c == '(' || c == '[' || c == '{' || angles && c == '<':
				depth++
			case c == ')' || c == ']' || c == '}' || angles && c == '>':
				depth--
			}
			if !yield(i, depth) {
				return
			}
		}
	}
}

// SplitTop splits Python text at a separator outside of quotes and brackets. It leaves out a blank last part.
func SplitTop(text string, separator byte, angles bool) (parts []string) {
	start := 0
	for i, depth := range Unquoted(text, angles) {
		if text[i] == separator && depth == 0 {
			parts, start = append(parts, strings.TrimSpace(text[start:i])), i+1
		}
	}
	if last := strings.TrimSpace(text[start:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

// isOpen reports whether brackets in a text are still open.
func isOpen(text string) bool {
	open := 0
	for _, open = range Unquoted(text, false) {
	}
	return open > 0
}
