package leak

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// code replaces everything that does not run in a Python text by spaces: comments, docstrings and other strings of
// several lines, and statements that cannot be reached. inString says, for each byte, whether it is inside a string
// that is kept.
func code(text string) (blanked string, inString []bool) {
	out, inString := []byte(text), make([]bool, len(text))
	depth, atStart := 0, true // atStart: i is at the start of a statement
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '#':
			for i < len(out) && out[i] != '\n' {
				out[i] = ' '
				i++
			}
		case c == '"' || c == '\'':
			end, triple := stringEnd(text, i)
			if end < 0 {
				i++
				continue
			}
			runs := func(int) bool { return false }
			if isFormatted(text, i) && !atStart {
				runs = replacementFields(text, i, end)
			}
			for k := i; k < end; k++ {
				switch {
				case runs(k):
				case (triple || atStart) && out[k] != '\n':
					out[k] = ' '
				case !triple && !atStart && k > i && k < end-1:
					inString[k] = true
				}
			}
			atStart, i = false, end
		default:
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(depth-1, 0)
			}
			if c == '\n' && depth == 0 {
				atStart = true
			} else if c > ' ' && !(atStart && strings.IndexByte("rRbBuUfF", c) >= 0 && i+1 < len(out) && strings.IndexByte("'\"rRbB", out[i+1]) >= 0) {
				atStart = false
			}
			i++
		}
	}
	blankUnreachable(out)
	return string(out), inString
}

// isFormatted reports whether the string that starts at i is an f-string.
func isFormatted(text string, i int) bool {
	prefix := text[max(0, i-2):i]
	if len(prefix) == 2 && strings.IndexByte("fFrR", prefix[0]) < 0 {
		prefix = prefix[1:]
	}
	return strings.ContainsAny(prefix, "fF") && strings.Trim(prefix, "fFrR") == ""
}

// replacementFields returns a function that tells whether a byte of an f-string from one offset to another is in a
// replacement field, whose content runs.
func replacementFields(text string, from, to int) func(int) bool {
	depth, fields := 0, make([]bool, to-from)
	for k := from; k < to; k++ {
		c := text[k]
		if depth == 0 && (c == '{' || c == '}') && k+1 < to && text[k+1] == c {
			k++ // a brace of the text
			continue
		}
		if c == '}' {
			depth = max(depth-1, 0)
		}
		if fields[k-from] = depth > 0; c == '{' {
			depth++
		}
	}
	return func(k int) bool { return fields[k-from] }
}

// blank overwrites everything except for line ends with spaces.
func blank(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// stringEnd returns the end of the string that starts at i, or -1 if it does not end, and whether it has triple quotes.
func stringEnd(text string, i int) (end int, triple bool) {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote, triple = strings.Repeat(quote, 3), true
	}
	for k := i + len(quote); k < len(text); k++ {
		switch {
		case text[k] == '\\':
			k++
		case text[k] == '\n' && !triple:
			return -1, false
		case strings.HasPrefix(text[k:], quote):
			return k + len(quote), triple
		}
	}
	return -1, triple
}

var (
	identifier     = regexp.MustCompile(`[A-Za-z_]\w*`)
	falseCondition = regexp.MustCompile(`^(?:if|while|elif)\s*\(?\s*(?:False|0|None|not True|not 1|\[\]|\(\)|\{\})\s*\)?\s*:`)
	leavesBlock    = regexp.MustCompile(`^(?:return|raise|continue|break)\b`)
)

// blankUnreachable blanks blocks whose condition is never true, and statements after one that leaves the block.
func blankUnreachable(out []byte) {
	from, depth := -1, 0 // lines that start at column from or later are blanked; -1 for none
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
			if falseCondition.MatchString(body) {
				blank(out[at:end])
				from = column + 1
			} else if leavesBlock.MatchString(body) {
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

// function is a function definition in a Python text.
type function struct {
	name      string
	at, end   int // byte offsets of its text, which starts with "def" or "async"
	decorated bool
}

// functions returns the function definitions in code, including nested ones, in order.
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
				out = append(out, function{name: identifier.FindString(rest[:min(len(rest), 200)]), at: at + column, end: len(text), decorated: strings.HasPrefix(before, "@")})
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

var (
	builtinNames = hashesOf(`abs all any ascii bin bool bytearray bytes callable chr complex delattr dict dir divmod enumerate eval exec filter float
		format frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len list locals map max memoryview min next object
		oct open ord pow print property range repr reversed round set setattr slice sorted staticmethod classmethod str sum super tuple type vars zip
		ArithmeticError AssertionError AttributeError EOFError Exception FileNotFoundError ImportError IndexError KeyError LookupError NameError
		NotImplementedError OSError OverflowError RuntimeError StopIteration TypeError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError
		ZeroDivisionError`)
	// fixedNames are the hashes of keywords and builtins, which a copy cannot rename.
	fixedNames = func() map[uint64]bool {
		out := hashesOf(`False None True and as assert async await break case class continue def del elif else except finally for from
			global if import in is lambda match nonlocal not or pass raise return try while with yield`)
		maps.Copy(out, builtinNames)
		return out
	}()
)

// hashesOf returns the hashes of names, with and without regard to case.
func hashesOf(names string) map[uint64]bool {
	out := map[uint64]bool{}
	for _, exact := range []bool{false, true} {
		for _, t := range words(names, exact, nil) {
			out[t.hash] = true
		}
	}
	return out
}

// ChangedFunctions returns the names of the Python functions that a change adds, removes or alters.
func ChangedFunctions(c Change) []string {
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

// ChangedLines returns the numbers of the lines of the base file that a change alters, and of one line before and after
// them.
func ChangedLines(c Change) map[int]bool {
	out := map[int]bool{}
	if c.Base == nil || c.Fixed == nil {
		return out
	}
	from, to := changedRange(*c.Base, *c.Fixed)
	for line := from - 1; line <= to+1; line++ {
		out[line] = true
	}
	return out
}
