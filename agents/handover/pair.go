package handover

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Whether a value is that of its expression. Where a step evaluated the expression
// and its answer says which part is the result, that is known either way; else it
// is the seeker's word, and the pack says so.

type pairing int

const (
	pairUnknown pairing = iota
	pairConfirmed
	pairRefuted
)

// printCommand is a command of the debugger that prints the value of an expression,
// which is group 1.
var printCommand = regexp.MustCompile(`(?s)^(?:pp?[ \t]+|print[ \t]*\(|!)(.*)$`)

// printedExpression is the expression that a command of the debugger prints; bare ones
// are expressions, or commands that print something of their own.
func printedExpression(command string) (expression string, prints bool) {
	command = oneLine(command)
	m := printCommand.FindStringSubmatch(command)
	if m == nil {
		return command, false
	}
	if strings.HasPrefix(command, "print") {
		return oneLine(strings.TrimSuffix(m[1], ")")), true
	}
	return oneLine(m[1]), true
}

// pairingOf tells whether value, found in what a step said, is that of expression.
// aliased: commands of the debugger may not mean what they say.
func pairingOf(s schemas.Step, said, expression, value string, aliased bool) pairing {
	if assignsOnOneLine(said, expression, value) {
		return pairConfirmed
	}
	if s.ToolCall == nil {
		return confirmedIf(expression == s.Observation.Source)
	}
	command := commandArgument(s.ToolCall)
	if s.ToolCall.Name != "pdb" {
		return confirmedIf(expression == oneLine(command) || expression == s.ToolCall.Name)
	}
	if expression == oneLine(command) { // the answer as a whole is its
		return pairConfirmed
	}
	var commands []string
	for _, line := range strings.Split(command, "\n") {
		for _, c := range strings.Split(line, ";;") {
			if c = strings.TrimSpace(c); c != "" {
				commands = append(commands, c)
			}
		}
	}
	at, times, allPrint := -1, 0, true
	for i, c := range commands {
		e, prints := printedExpression(c)
		allPrint = allPrint && prints
		if e == expression {
			at, times = i, times+1
		}
	}
	if times != 1 || aliased {
		return pairUnknown
	}
	lines := resultLines(said)
	has := func(text string) bool {
		_, ok := quote(text, value, nil)
		return ok
	}
	switch n := len(lines); {
	case len(commands) == 1:
		return pairConfirmed
	case allPrint && n == len(commands): // a line for each
		if has(lines[at]) {
			return pairConfirmed
		}
		return pairRefuted
	case at == len(commands)-1:
		return confirmedIf(strings.HasSuffix(oneLine(strings.Join(lines, "\n")), oneLine(value)))
	case at == 0:
		return confirmedIf(strings.HasPrefix(oneLine(strings.Join(lines, "\n")), oneLine(value)))
	}
	return pairUnknown
}

func confirmedIf(is bool) pairing {
	if is {
		return pairConfirmed
	}
	return pairUnknown
}

// resultLines are the lines of an answer of the debugger before it names the frame.
func resultLines(said string) []string {
	lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
	if last := len(lines) - 1; strings.HasPrefix(lines[last], "Current frame: ") {
		lines = lines[:last]
	}
	return lines
}

// assignsOnOneLine tells whether a line says of the expression that it is the value.
func assignsOnOneLine(said, expression, value string) bool {
	e, v := strings.Fields(expression), strings.Fields(value)
	for i := range e {
		e[i] = regexp.QuoteMeta(e[i])
	}
	for i := range v {
		v[i] = regexp.QuoteMeta(v[i])
	}
	re, err := regexp.Compile(`(?m)^(?:E +)?(?:[^\pL\pN_\n]*[^\pL\pN_.\n])?` + strings.Join(e, `[ \t]+`) + `[ \t]*(?:==?|:|->)[ \t]*` + strings.Join(v, `\s+`) + `[ \t,;]*$`)
	return err == nil && re.MatchString(said)
}
