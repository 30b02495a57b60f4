package pdb

import (
	"regexp"
	"slices"
	"strings"
)

// pdbCommands are the words pdb takes as commands rather than as Python.
var pdbCommands = strings.Fields(`a alias args b break bt c cl clear commands condition cont continue d debug disable
	display down enable EOF exceptions exit h help ignore interact j jump l list ll longlist n next p pp q quit r
	restart return retval run rv s source step tbreak u unalias undisplay unt until up w whatis where`)

var (
	leadingWord = regexp.MustCompile(`^([A-Za-z_]\w*)(.*)$`)
	assigns     = regexp.MustCompile(`^\s*(?:[-+*/%&|^@]|//|\*\*|<<|>>|:[^=]*)?=[^=]`)
)

// split takes one call's text apart into the commands to run one after the
// other. note tells the model about a part that will not run.
//
//   - ;; separates commands, as in pdb, except inside quotes.
//   - Several lines run as one Python statement when they are one, and one by one
//     when each prints (p, pp, print, !). Otherwise only the first line runs.
func split(text string) (commands []string, note string) {
	lines := nonBlank(strings.Split(text, "\n"))
	switch {
	case len(lines) == 0:
		return nil, ""
	case len(lines) == 1:
		return atSeparators(strings.TrimSpace(text)), ""
	case !slices.ContainsFunc(lines, func(l string) bool { return !prints(l) }):
		for _, l := range lines {
			commands = append(commands, atSeparators(strings.TrimSpace(l))...)
		}
		return commands, ""
	case prints(lines[0]) || !isCommand(lines[0]):
		return []string{strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n")}, ""
	}
	return atSeparators(strings.TrimSpace(lines[0])),
		"Only the first line was run. Send one pdb command per call, or separate commands with ;;"
}

func nonBlank(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
}

func prints(line string) bool {
	return strings.HasPrefix(line, "p ") || strings.HasPrefix(line, "pp ") ||
		strings.HasPrefix(line, "print(") || strings.HasPrefix(line, "!")
}

// isCommand tells whether pdb takes the line as a command of its own.
func isCommand(line string) bool {
	m := leadingWord.FindStringSubmatch(strings.TrimSpace(line))
	return m != nil && slices.Contains(pdbCommands, m[1]) && asStatement(line) == line
}

// asStatement marks a line with ! where it begins with a variable that is named
// like a command: `n = 5`, `c.x`, `l[0]` mean the variable.
func asStatement(line string) string {
	m := leadingWord.FindStringSubmatch(line)
	if m == nil || m[1] == "p" || m[1] == "pp" || !slices.Contains(pdbCommands, m[1]) {
		return line
	}
	if rest := m[2]; rest != "" && (strings.IndexByte(" \t", rest[0]) < 0 || assigns.MatchString(rest)) {
		return "!" + line
	}
	return line
}

// atSeparators splits at ;; outside of quotes.
func atSeparators(line string) []string {
	var out []string
	start, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != 0:
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ';' && strings.HasPrefix(line[i:], ";;"):
			out = append(out, line[start:i])
			i++
			start = i + 1
		}
	}
	out = append(out, line[start:])
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return nonBlank(out)
}

// splitCondition takes "SPEC, CONDITION" apart. A comma inside brackets or
// quotes cannot be part of SPEC, so the first one separates.
func splitCondition(rest string) (spec, condition string) {
	spec, condition, _ = strings.Cut(rest, ",")
	spec, condition = strings.TrimSpace(spec), strings.TrimSpace(condition)
	if at, cond, ok := strings.Cut(spec, " if "); ok && condition == "" { // gdb's way of writing it
		spec, condition = strings.TrimSpace(at), strings.TrimSpace(cond)
	}
	return spec, strings.TrimSpace(strings.TrimPrefix(condition, "if "))
}
