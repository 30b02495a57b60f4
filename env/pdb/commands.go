package pdb

import (
	"regexp"
	"slices"
	"strings"
)

// pdbCommands are the words that pdb interprets as commands and not as Python.
var pdbCommands = strings.Fields(`a alias args b break bt c cl clear commands condition cont continue d debug disable
	display down enable EOF exceptions exit h help ignore interact j jump l list ll longlist n next p pp q quit r
	restart return retval run rv s source step tbreak u unalias undisplay unt until up w whatis where`)

var (
	leadingWord    = regexp.MustCompile(`^([A-Za-z_]\w*)(.*)$`)
	assignmentRest = regexp.MustCompile(`^\s*(?:[-+*/%&|^@]|//|\*\*|<<|>>|:[^=]*)?=[^=]`)
)

// splitCommands splits the text of one call into commands: at newlines, at ;; and, if all parts are
// commands, at single semicolons. It keeps consecutive lines of Python together.
func splitCommands(text string) (commands []string) {
	var statement []string
	flush := func() {
		if len(statement) > 0 {
			commands = append(commands, splitLine(strings.TrimSpace(strings.Join(statement, "\n")))...)
			statement = nil
		}
	}
	for _, line := range nonBlank(strings.Split(text, "\n")) {
		if !isUnfinished(strings.Join(statement, "\n")) && (isCommand(line) || len(statement) > 0 && isCommand(statement[0])) {
			flush()
		}
		statement = append(statement, line)
	}
	flush()
	return commands
}

func nonBlank(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
}

// isCommand reports whether pdb gets the line as a command of its own: it is one of pdbCommands, a
// call of print, or Python after "!". An indented line is not a command, because it continues the
// statement before it.
func isCommand(line string) bool {
	for _, prefix := range []string{"p ", "pp ", "print(", "!"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ") {
		return false
	}
	m := leadingWord.FindStringSubmatch(strings.TrimSpace(line))
	return m != nil && slices.Contains(pdbCommands, m[1]) && asStatement(line) == line
}

// asStatement puts ! before a line that begins with a variable that has the name of a command,
// such as `n = 5`, `c.x` or `l[0]`.
func asStatement(line string) string {
	m := leadingWord.FindStringSubmatch(line)
	if m == nil || m[1] == "p" || m[1] == "pp" || !slices.Contains(pdbCommands, m[1]) {
		return line
	}
	if rest := m[2]; rest != "" && (strings.IndexByte(" \t", rest[0]) < 0 || assignmentRest.MatchString(rest)) {
		return "!" + line
	}
	return line
}

// splitLine splits a line into commands at ;; and ; as described at splitCommands.
func splitLine(line string) []string {
	if strings.HasPrefix(line, "alias ") { // its definition may consist of several commands
		return []string{line}
	}
	parts := nonBlank(splitPython(line, ";;"))
	var out []string
	for _, part := range parts {
		part = strings.TrimSpace(part)
		single := nonBlank(splitPython(part, ";"))
		if slices.ContainsFunc(single, func(p string) bool { return !isCommand(strings.TrimSpace(p)) }) {
			single = []string{part}
		}
		for _, p := range single {
			out = append(out, strings.TrimSpace(p))
		}
	}
	return out
}

// splitPython splits Python text at sep, except inside quotes and comments. If sep is ";", it also
// does not split inside brackets.
func splitPython(text, sep string) []string {
	var out []string
	start := 0
	scan(text, func(i, depth int) int {
		if depth > 0 && sep == ";" || !strings.HasPrefix(text[i:], sep) {
			return 1
		}
		out = append(out, text[start:i])
		start = i + len(sep)
		return len(sep)
	})
	return append(out, text[start:])
}

// isUnfinished reports whether text ends inside a bracket or a triple-quoted string.
func isUnfinished(text string) bool { return scan(text, func(int, int) int { return 1 }) }

// scan calls at for each byte of Python text outside of quotes and comments, with the number of
// open brackets. at returns the number of bytes to advance. scan reports whether the text ends
// inside a bracket or a triple-quoted string.
func scan(text string, at func(i, depth int) int) (open bool) {
	depth, quote := 0, ""
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\' && quote != "":
			i += 2
		case quote != "" && (strings.HasPrefix(text[i:], quote) || c == '\n' && len(quote) == 1):
			i += len(quote)
			quote = ""
		case quote != "":
			i++
		case c == '\'' || c == '"':
			quote = text[i : i+1]
			if long := strings.Repeat(quote, 3); strings.HasPrefix(text[i:], long) {
				quote = long
			}
			i += len(quote)
		case c == '#':
			if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
				i += n
				continue
			}
			i = len(text)
		default:
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(0, depth-1)
			}
			i += at(i, depth)
		}
	}
	return depth > 0 || len(quote) == 3
}

// splitCondition splits "SPEC, CONDITION" at the first comma. SPEC cannot contain a comma, because
// it has no brackets and no quotes.
func splitCondition(rest string) (spec, condition string) {
	spec, condition, _ = strings.Cut(rest, ",")
	spec, condition = strings.TrimSpace(spec), strings.TrimSpace(condition)
	if at, cond, ok := strings.Cut(spec, " if "); ok && condition == "" { // the syntax of gdb
		spec, condition = strings.TrimSpace(at), strings.TrimSpace(cond)
	}
	return spec, strings.TrimSpace(strings.TrimPrefix(condition, "if "))
}
