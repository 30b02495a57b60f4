package shown

import "strings"

// The formats of a numbered line. Each function returns the number and the text of a line in its
// format. They do not use regular expressions, because metrics read many lines.

// ViewLine reads a line of view: "B  12  text".
func ViewLine(line string) (n int, text string, ok bool) {
	if line == "" || line[0] != ' ' && line[0] != 'B' {
		return 0, "", false
	}
	n, rest, ok := number(line[1:])
	if !ok {
		return 0, "", false
	}
	text, ok = strings.CutPrefix(rest, "  ")
	return n, text, ok
}

// GrepLine reads a line of grep: "  12: text" for a match, "  12- text" for its context.
func GrepLine(line string) (n int, text string, ok bool) {
	n, rest, ok := number(line)
	if !ok || len(rest) < 2 || rest[0] != ':' && rest[0] != '-' || rest[1] != ' ' {
		return 0, "", false
	}
	return n, rest[2:], true
}

// PDBLine reads a line of a listing of pdb: " 12 B->\ttext".
func PDBLine(line string) (n int, text string, ok bool) {
	n, rest, ok := number(line)
	if !ok {
		return 0, "", false
	}
	mark, text, ok := strings.Cut(rest, "\t")
	if !ok {
		return 0, "", false
	}
	mark = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(mark, " "), "B"), " ")
	mark = strings.TrimPrefix(strings.TrimPrefix(mark, "->"), ">>")
	return n, text, strings.Trim(mark, " ") == ""
}

// number reads a positive number after spaces. It returns the text after the number.
func number(line string) (n int, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	i := 0
	for i < len(line) && '0' <= line[i] && line[i] <= '9' && i < 9 {
		n = 10*n + int(line[i]-'0')
		i++
	}
	if i == 0 || i < len(line) && '0' <= line[i] && line[i] <= '9' {
		return 0, "", false
	}
	return n, line[i:], true
}
