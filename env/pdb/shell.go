package pdb

import (
	"errors"
	"strings"
)

// token is one word or operator of a shell line, by its place in the text.
type token struct {
	start, end int
	op         bool
	lit        string // the word without quotes
	fixed      bool   // lit is what the shell will make of it: nothing expands
}

var (
	errQuote = errors.New("a quote or bracket is not closed")
	errNul   = errors.New("it contains a NUL byte")
)

// shellTokens splits a shell line far enough to find its simple commands: quotes, escapes,
// expansions, comments and operators. It expands nothing.
func shellTokens(line string) ([]token, error) {
	if strings.ContainsRune(line, 0) {
		return nil, errNul
	}
	var out []token
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '\\' && strings.HasPrefix(line[i:], "\\\n"):
			i += 2
		case c == '#':
			n := strings.IndexByte(line[i:], '\n')
			if n < 0 {
				return out, nil
			}
			i += n
		default:
			if n := operator(line[i:]); n > 0 {
				out = append(out, token{start: i, end: i + n, op: true, lit: line[i : i+n]})
				i += n
				continue
			}
			t, err := word(line, i)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
			i = t.end
		}
	}
	return out, nil
}

// operator returns the length of the operator at the start of s, 0 if there is none. A
// redirection includes the descriptor before it and the one it duplicates.
func operator(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	rest := s[n:]
	for _, op := range []string{"&>>", "&>", "<<<", "<<", ">>", ">&", "<&", "<>", ">|", "<", ">"} {
		if strings.HasPrefix(rest, op) && (n == 0 || op[0] != '&') {
			end := n + len(op)
			if op == ">&" || op == "<&" {
				for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '-') {
					end++
				}
			}
			return end
		}
	}
	if n > 0 {
		return 0
	}
	for _, op := range []string{"&&", "||", ";;", "|&", "&", "|", ";", "\n", "(", ")"} {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return 0
}

// word reads the word that begins at i.
func word(line string, i int) (token, error) {
	t := token{start: i, fixed: true}
	var lit strings.Builder
	for i < len(line) {
		c := line[i]
		n := 1
		switch {
		case strings.IndexByte(" \t\r\n;&|<>()", c) >= 0:
			t.end, t.lit = i, lit.String()
			return t, nil
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return t, errQuote
			}
			lit.WriteString(line[i+1 : i+1+end])
			n = end + 2
		case c == '"':
			end, plain := doubleQuoted(line[i:], &lit)
			if end < 0 {
				return t, errQuote
			}
			t.fixed = t.fixed && plain
			n = end
		case c == '\\':
			if i+1 >= len(line) {
				return t, errQuote
			}
			if line[i+1] != '\n' {
				lit.WriteByte(line[i+1])
			}
			n = 2
		case c == '$' || c == '`':
			if n = expansion(line[i:]); n < 0 {
				return t, errQuote
			}
			t.fixed = false
			lit.WriteString(line[i : i+n])
		default:
			if strings.IndexByte("*?[~{", c) >= 0 {
				t.fixed = false
			}
			lit.WriteByte(c)
		}
		i += n
	}
	t.end, t.lit = i, lit.String()
	return t, nil
}

// doubleQuoted reads a "..." word part and returns its length (-1: not closed)
// and whether nothing in it expands.
func doubleQuoted(s string, lit *strings.Builder) (int, bool) {
	plain := true
	for i := 1; i < len(s); {
		switch c := s[i]; c {
		case '"':
			return i + 1, plain
		case '\\':
			if i+1 >= len(s) {
				return -1, plain
			}
			if strings.IndexByte("$`\"\\\n", s[i+1]) < 0 {
				lit.WriteByte(c)
			}
			lit.WriteByte(s[i+1])
			i += 2
		case '$', '`':
			n := expansion(s[i:])
			if n < 0 {
				return -1, false
			}
			plain = false
			lit.WriteString(s[i : i+n])
			i += n
		default:
			lit.WriteByte(c)
			i++
		}
	}
	return -1, plain
}

// expansion returns the length of the $..., ${...}, $(...) or `...` at the start of s, -1 if it
// is not closed. Quotes inside brackets hide brackets.
func expansion(s string) int {
	if s[0] == '`' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '`':
				return i + 1
			}
		}
		return -1
	}
	if len(s) < 2 || s[1] != '(' && s[1] != '{' {
		return 1
	}
	depth, quote := 0, byte(0)
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '{':
			depth++
		case c == ')' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
