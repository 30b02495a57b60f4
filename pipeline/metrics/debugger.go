package metrics

import (
	"regexp"
	"slices"
	"strings"
)

var (
	displayLine    = regexp.MustCompile(`^display ([^:]+): (.*?)(?:  \[old: .*\])?$`)
	showCommand    = regexp.MustCompile(`(?s)^(?:pp?\s+|print\s*\(|pp?\s*\(|whatis\s+|!)(.*)$`)
	assignmentLine = regexp.MustCompile(`^[\w.\[\]'", ]+(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=[^=]`)
	memberListing  = regexp.MustCompile(`^(?:vars\((.+)\)|(.+)\.__dict__)$`)
)

// shownExpression returns the expression whose value a debugger command prints, or "" for other
// commands.
func shownExpression(command string) string {
	command = strings.TrimSpace(command)
	if command == "" {
		return ""
	}
	var m []string
	if strings.IndexByte("pw!", command[0]) >= 0 {
		m = showCommand.FindStringSubmatch(command)
	}
	if m != nil {
		expression := strings.TrimSpace(m[1])
		switch {
		case isAssignment(expression):
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
	if debuggerWords[word] && !strings.HasPrefix(strings.TrimSpace(rest), "=") || isAssignment(command) {
		return ""
	}
	return command
}

func isAssignment(text string) bool {
	return strings.Contains(text, "=") && assignmentLine.MatchString(text)
}

// debuggerWords holds debugger commands, and Python keywords of statements, that print no value.
var debuggerWords = wordSet(`a alias args b break bt c cl clear commands condition cont continue d debug disable
	display down enable EOF exceptions exit h help ignore interact j jump l list ll longlist n next q quit r restart
	return run s source step tbreak u unalias undisplay unt until up w where
	import from for while if with try def class del raise assert`)

// runs holds the debugger commands after which the program is at another place.
var runs = wordSet("c cont continue n next s step r return unt until j jump u up d down restart run q quit")

func wordSet(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

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
		for _, item := range SplitTop(inner, ',', true) {
			for i, depth := range Unquoted(item, true) {
				if item[i] == ':' && depth == 0 {
					key, value := strings.Trim(strings.TrimSpace(item[:i]), `'"`), strings.TrimSpace(item[i+1:])
					if value != "" {
						out = append(out, namedValue{prefix + key, value})
					}
					break
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	if inner, ok := innerText(expression, '(', ')'); ok && len(SplitTop(inner, ',', true)) > 1 {
		expression = inner
	}
	names := SplitTop(expression, ',', true)
	if inner, ok := innerText(answer, '(', ')'); ok && len(names) > 1 {
		if values := SplitTop(inner, ',', true); len(values) == len(names) {
			var out []namedValue
			for i := range names {
				out = append(out, namedValue{names[i], values[i]})
			}
			return out
		}
	}
	return []namedValue{{expression, answer}}
}

// ValueText returns the text of a value without quotes, line breaks and addresses of objects.
func ValueText(shown string) string {
	shown = withoutAddresses(shown)
	if strings.ContainsAny(shown, "\n\t\v\f\r") || strings.Contains(shown, "  ") || strings.TrimSpace(shown) != shown {
		shown = strings.Join(strings.Fields(shown), " ")
	}
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

// debuggerCommands returns the commands of a call of the debugger.
func debuggerCommands(command string) []string {
	commands := strings.FieldsFunc(strings.ReplaceAll(command, ";;", "\n"), func(c rune) bool { return c == '\n' })
	for i := range commands {
		commands[i] = strings.TrimSpace(commands[i])
	}
	return slices.DeleteFunc(commands, func(c string) bool { return c == "" })
}
