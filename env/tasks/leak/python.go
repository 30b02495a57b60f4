package leak

import (
	"regexp"
	"slices"
	"strings"
)

// code blanks what does not run in a Python text, byte by byte: comments, docstrings and other
// strings of several lines, statements that cannot be reached. quoted has, for each byte, whether
// it is inside a string that stays.
func code(text string) (shown string, quoted []bool) {
	out, quoted := []byte(text), make([]bool, len(text))
	depth, fresh := 0, true // fresh: nothing of the statement was seen
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '#':
			for i < len(out) && out[i] != '\n' {
				out[i] = ' '
				i++
			}
		case c == '"' || c == '\'':
			end, long := stringEnd(text, i)
			if end < 0 {
				i++
				continue
			}
			if long || fresh {
				blank(out[i:end])
			} else {
				for k := i + 1; k < end-1; k++ {
					quoted[k] = true
				}
			}
			fresh, i = false, end
		default:
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(depth-1, 0)
			}
			if c == '\n' && depth == 0 {
				fresh = true
			} else if c > ' ' && !(fresh && strings.IndexByte("rRbBuUfF", c) >= 0 && i+1 < len(out) && strings.IndexByte("'\"rRbB", out[i+1]) >= 0) {
				fresh = false
			}
			i++
		}
	}
	unreachable(out)
	return string(out), quoted
}

func blank(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// stringEnd returns the end of the string that starts at i, and whether it has triple quotes; -1 if
// it does not end.
func stringEnd(text string, i int) (end int, long bool) {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote, long = strings.Repeat(quote, 3), true
	}
	for k := i + len(quote); k < len(text); k++ {
		switch {
		case text[k] == '\\':
			k++
		case text[k] == '\n' && !long:
			return -1, false
		case strings.HasPrefix(text[k:], quote):
			return k + len(quote), long
		}
	}
	return -1, long
}

var (
	nameIn = regexp.MustCompile(`[A-Za-z_]\w*`)
	never  = regexp.MustCompile(`^(?:if|while|elif)\s*\(?\s*(?:False|0|None|not True|not 1|\[\]|\(\)|\{\})\s*\)?\s*:`)
	leave  = regexp.MustCompile(`^(?:return|raise|continue|break)\b`)
)

// unreachable blanks blocks of conditions that never hold, and statements behind one that leaves.
func unreachable(out []byte) {
	from, depth := -1, 0 // column from which lines are blanked
	for at := 0; at < len(out); {
		end := at
		for end < len(out) && out[end] != '\n' {
			end++
		}
		line := string(out[at:end])
		body := strings.TrimLeft(line, " \t")
		column := len(line) - len(body)
		switch {
		case body == "" || depth > 0:
		case from >= 0 && column >= from:
			blank(out[at:end])
			body = ""
		default:
			from = -1
			if never.MatchString(body) {
				blank(out[at:end])
				from = column + 1
			} else if leave.MatchString(body) {
				from = column
			}
		}
		for _, c := range body {
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(depth-1, 0)
			}
		}
		at = end + 1
	}
}

// function is a def of a Python text.
type function struct {
	name      string
	at, end   int // of its text, from "def"
	decorated bool
}

// functions returns the defs of code, with nested ones, in order.
func functions(text string) []function {
	var out []function
	var open []int // indexes in out of functions that have not ended
	var columns []int
	depth, before := 0, ""
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		body := strings.TrimLeft(line, " \t")
		column := len(line) - len(body)
		if depth == 0 && strings.TrimSpace(body) != "" {
			for len(open) > 0 && column <= columns[len(columns)-1] {
				out[open[len(open)-1]].end = at
				open, columns = open[:len(open)-1], columns[:len(columns)-1]
			}
			if rest, ok := strings.CutPrefix(strings.TrimPrefix(body, "async "), "def "); ok {
				open, columns = append(open, len(out)), append(columns, column)
				out = append(out, function{name: nameIn.FindString(rest[:min(len(rest), 200)]), at: at + column, end: len(text), decorated: strings.HasPrefix(before, "@")})
			}
			before = body
		}
		for _, c := range []byte(body) {
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(depth-1, 0)
			}
		}
		at += len(line) + 1
	}
	return out
}

// enclosing returns the innermost function around an offset, or nil.
func enclosing(list []function, at int) *function {
	var found *function
	for i := range list {
		if list[i].at <= at && at < list[i].end {
			found = &list[i]
		}
	}
	return found
}

// keywords and builtins cannot be renamed in a copy.
var fixedNames = func() map[uint64]bool {
	out := map[uint64]bool{}
	for _, t := range words(`False None True and as assert async await break case class continue def del elif else except finally for from
		global if import in is lambda match nonlocal not or pass raise return try while with yield
		abs all any bool bytes callable chr dict dir divmod enumerate filter float format frozenset getattr hasattr hash hex id input int
		isinstance issubclass iter len list map max min next object open ord pow print property range repr reversed round set setattr slice
		sorted staticmethod classmethod str sum super tuple type vars zip
		ValueError TypeError KeyError IndexError AttributeError RuntimeError StopIteration Exception NotImplementedError`, false, nil) {
		out[t.hash] = true
	}
	return out
}()

// Functions returns the names of the functions that a change alters.
func Functions(c Change) []string {
	var out []string
	sides := [2]string{}
	for i, text := range []*string{c.Base, c.Fixed} {
		if text != nil && isPython(c.Path) {
			sides[i], _ = code(*text)
		}
	}
	for i, text := range sides {
		for _, f := range functions(text) {
			if !strings.Contains(sides[1-i], strings.TrimRight(text[f.at:f.end], " \t\n")) && !slices.Contains(out, f.name) {
				out = append(out, f.name)
			}
		}
	}
	return out
}

// Lines returns the lines of the file before the change that it alters, and those beside them.
func Lines(c Change) map[int]bool {
	out := map[int]bool{}
	if c.Base == nil || c.Fixed == nil {
		return out
	}
	from, to := changedLines(*c.Base, *c.Fixed)
	for line := from - 1; line <= to+1; line++ {
		out[line] = true
	}
	return out
}
