package pdb

import (
	"errors"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

// token is a word or an operator of a shell line.
type token struct {
	start, end int    // byte offsets in the line
	op         bool   // the token is an operator
	lit        string // the operator, or the word without quotes
	fixed      bool   // the shell expands nothing in the word, so it passes lit to the program
}

var errNul = errors.New("it contains a NUL byte")

// shellTokens splits a shell line into words and operators and skips comments. It does not parse
// the line, because the error about an operator that the debugger does not support must name that
// operator even if the line is not a valid command.
func shellTokens(line string) ([]token, error) {
	if strings.ContainsRune(line, 0) {
		return nil, errNul
	}
	bare := strings.ReplaceAll(line, "\r", " ") // it ends a word
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
			w, _, err := shellwords.Next(bare[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, token{start: i, end: i + len(w.Raw), lit: w.Text, fixed: w.Fixed})
			i += len(w.Raw)
		}
	}
	return out, nil
}

// operator returns the length of the operator at the start of s, 0 if there is none. A redirection
// includes the file descriptor before it and the descriptor that it duplicates.
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
