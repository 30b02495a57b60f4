package metrics

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

var (
	// stackEntry matches a stack frame as the debugger prints it, perhaps with a return value.
	stackEntry     = regexp.MustCompile(`^(?:> | {2})(\S.*)\((\d+)\)(\S+?)\(\)(?:->(.*))?$`)
	frameLine      = regexp.MustCompile(`^Current frame: (.*):(\d+) in (\S+)`)
	nameValue      = regexp.MustCompile(`^(\*{0,2}[A-Za-z_]\w*) = (.*)$`)
	displayLine    = regexp.MustCompile(`^display ([^:]+): (.*?)(?:  \[old: .*\])?$`)
	breakpointSet  = regexp.MustCompile(`^(?:Breakpoint )?\d+ +(set at |at )?`)
	showCommand    = regexp.MustCompile(`(?s)^(?:pp?\s+|print\s*\(|pp?\s*\(|whatis\s+|!)(.*)$`)
	assignmentLine = regexp.MustCompile(`^[\w.\[\]'", ]+(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=[^=]`)
	memberListing  = regexp.MustCompile(`^(?:vars\((.+)\)|(.+)\.__dict__)$`)
)

// debuggerFacts reads an observation of the debugger: frames, values of names, source
// lines, and output of the program.
func debuggerFacts(r *schemas.StepRow, lines []string) []fact {
	output, file, scope, out := splitAtFrame(lines)
	commands := debuggerCommands(commandOf(r))
	names := make([]string, len(commands))
	values := 0
	for i, c := range commands {
		if names[i] = shownExpression(c); names[i] != "" {
			values++
		}
	}
	switch {
	case len(commands) == 1 && values == 1:
		return append(out, valuesOf(scope, names[0], strings.Join(output, "\n"))...)
	case values > 0 && values == len(commands) && values == len(output): // one line per command
		for i, line := range output {
			out = append(out, valuesOf(scope, names[i], line)...)
		}
		return out
	}
	return append(out, sourceFacts(file, scope, output)...)
}

// splitAtFrame splits an observation at the line that names the current frame. output is the part
// before that line. out are the facts in the source listing after it. In observations of debug-gym,
// the file name precedes the listing.
func splitAtFrame(lines []string) (output []string, file, scope string, out []fact) {
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.HasPrefix(lines[i], "Current frame:") {
			continue
		}
		rest := lines[i+1:]
		if m := frameLine.FindStringSubmatch(lines[i]); m != nil {
			file, scope = m[1], m[1]+" in "+m[3]
			out = []fact{{"frame", scope + " at " + m[2]}}
		} else if len(rest) > 0 {
			file, scope, rest = rest[0], rest[0], rest[1:]
		}
		for _, line := range rest {
			text, isLine := numbered(line)
			switch {
			case isLine:
				out = append(out, fileLine(file, text)...)
			case line != "[EOF]" && !strings.HasPrefix(line, "Context around the current frame:"):
				out = append(out, lineFacts(line)...)
			}
		}
		return slices.DeleteFunc(slices.Clone(lines[:i]), func(l string) bool { return l == "Pdb command output:" }), file, scope, out
	}
	return lines, "", "", nil
}

// sourceFacts reads the output of commands that step, list source and set breakpoints.
func sourceFacts(file, scope string, lines []string) (out []fact) {
	sourceFile, name := file, "" // the file of the next source line, and the name whose value continues
	var value []string           // lines of that value
	for _, line := range lines {
		if name != "" { // a value may span several lines
			if nameValue.FindStringSubmatch(line) == nil && stackEntry.FindStringSubmatch(line) == nil && strings.HasPrefix(line, " ") {
				value = append(value, line)
				continue
			}
			out = append(out, valueOf(scope, name, strings.Join(value, "\n")))
			name, value = "", nil
		}
		if m := stackEntry.FindStringSubmatch(line); m != nil {
			sourceFile = m[1]
			out = append(out, fact{"frame", m[1] + " in " + m[3] + " at " + m[2]})
			if m[4] != "" {
				out = append(out, valueOf(m[1]+" in "+m[3], "return", m[4]))
			}
			continue
		}
		if m := nameValue.FindStringSubmatch(line); m != nil {
			name, value = m[1], []string{m[2]}
			continue
		}
		if m := displayLine.FindStringSubmatch(line); m != nil {
			out = append(out, valuesOf(scope, m[1], m[2])...)
			continue
		}
		if source, ok := strings.CutPrefix(line, "-> "); ok {
			out = append(out, fileLine(sourceFile, source)...)
			continue
		}
		if text, ok := numbered(line); ok && strings.Contains(line, "\t") {
			out = append(out, fileLine(file, text)...)
			continue
		}
		if strings.HasPrefix(line, "Breakpoint ") && strings.HasSuffix(line, " hit.") || line == "--Return--" || line == "--Call--" || line == "[EOF]" {
			continue
		}
		out = append(out, lineFacts(breakpointSet.ReplaceAllString(line, "breakpoint at "))...)
	}
	if name != "" {
		out = append(out, valueOf(scope, name, strings.Join(value, "\n")))
	}
	return out
}

// shownExpression returns the expression whose value a debugger command prints, or "" for other
// commands.
func shownExpression(command string) string {
	command = strings.TrimSpace(command)
	if m := showCommand.FindStringSubmatch(command); m != nil {
		expression := strings.TrimSpace(m[1])
		switch {
		case assignmentLine.MatchString(expression):
			return ""
		case strings.HasPrefix(command, "whatis"):
			return "type of " + expression
		case strings.HasSuffix(expression, ")") && strings.Count(expression, ")") > strings.Count(expression, "("):
			expression = strings.TrimSuffix(expression, ")")
		}
		return strings.TrimSpace(expression)
	}
	word, rest, _ := strings.Cut(command, " ")
	if command == "retval" || command == "rv" {
		return "return"
	}
	if debuggerWords[word] && !strings.HasPrefix(strings.TrimSpace(rest), "=") || assignmentLine.MatchString(command) {
		return ""
	}
	return command
}

// debuggerWords holds debugger commands, and Python keywords of statements, that print no value.
var debuggerWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a alias args b break bt c cl clear commands condition cont continue d debug disable
		display down enable EOF exceptions exit h help ignore interact j jump l list ll longlist n next q quit r restart
		return run s source step tbreak u unalias undisplay unt until up w where
		import from for while if with try def class del raise assert`) {
		m[w] = true
	}
	return m
}()

// namedValue is the text of a value, which the debugger printed for a name or another expression.
type namedValue struct{ name, text string }

// splitValues returns the values that an answer shows for an expression. For the local variables,
// the members of an object and a tuple, it returns one value per name.
func splitValues(expression, answer string) []namedValue {
	expression, answer = strings.Join(strings.Fields(expression), " "), strings.TrimSpace(answer)
	prefix, isListing := "", false
	switch m := memberListing.FindStringSubmatch(expression); {
	case expression == "locals()" || expression == "vars()":
		isListing = true
	case m != nil:
		prefix, isListing = m[1]+m[2]+".", true
	}
	if inner, ok := innerText(answer, '{', '}'); ok && isListing {
		var out []namedValue
		for _, item := range splitTopLevel(inner, ',') {
			if kv := splitTopLevel(item, ':'); len(kv) > 1 {
				key := strings.Trim(strings.TrimSpace(kv[0]), `'"`)
				out = append(out, namedValue{prefix + key, strings.TrimSpace(item[len(kv[0])+1:])})
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	if inner, ok := innerText(expression, '(', ')'); ok && len(splitTopLevel(inner, ',')) > 1 {
		expression = inner
	}
	names := splitTopLevel(expression, ',')
	if inner, ok := innerText(answer, '(', ')'); ok && len(names) > 1 {
		if values := splitTopLevel(inner, ','); len(values) == len(names) {
			var out []namedValue
			for i := range names {
				out = append(out, namedValue{strings.TrimSpace(names[i]), strings.TrimSpace(values[i])})
			}
			return out
		}
	}
	return []namedValue{{expression, answer}}
}

// valuesOf returns the facts about the values that an answer shows for an expression.
func valuesOf(scope, expression, answer string) (out []fact) {
	for _, v := range splitValues(expression, answer) {
		out = append(out, valueOf(scope, v.name, v.text))
	}
	return out
}

// valueOf returns the fact that a name has a value. It removes quotes and line breaks from the
// value, so that p, pp and print give the same fact.
func valueOf(scope, name, shown string) fact {
	return fact{"value in " + scope, strings.TrimSpace(name) + " = " + ValueText(shown)}
}

// ValueText returns the text of a value without quotes, line breaks and addresses of objects.
func ValueText(shown string) string {
	shown = strings.Join(strings.Fields(withoutAddresses(shown)), " ")
	if n := len(shown); n > 1 && (shown[0] == '\'' || shown[0] == '"') && shown[n-1] == shown[0] {
		shown = shown[1 : n-1]
	}
	return shown
}

// innerText returns the text between a left and a right bracket at the ends of text.
func innerText(text string, left, right byte) (string, bool) {
	if n := len(text); n > 1 && text[0] == left && text[n-1] == right {
		return text[1 : n-1], true
	}
	return "", false
}

// splitTopLevel splits Python text at a separator outside of quotes and brackets. Angle
// brackets count, because they enclose the representation of many objects.
func splitTopLevel(text string, separator byte) (parts []string) {
	depth, quote, start := 0, byte(0), 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("([{<", c) >= 0:
			depth++
		case strings.IndexByte(")]}>", c) >= 0:
			depth--
		case c == separator && depth == 0:
			parts, start = append(parts, text[start:i]), i+1
		}
	}
	if strings.TrimSpace(text[start:]) != "" {
		parts = append(parts, text[start:])
	}
	return parts
}

// debuggerCommands returns the commands of a call of the debugger.
func debuggerCommands(command string) []string {
	commands := strings.FieldsFunc(strings.ReplaceAll(command, ";;", "\n"), func(c rune) bool { return c == '\n' })
	for i := range commands {
		commands[i] = strings.TrimSpace(commands[i])
	}
	return slices.DeleteFunc(commands, func(c string) bool { return c == "" })
}

// runs holds the debugger commands after which the program is at another place.
var runs = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields("c cont continue n next s step r return unt until j jump u up d down restart run q quit") {
		m[w] = true
	}
	return m
}()
