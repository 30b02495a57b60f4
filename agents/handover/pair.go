package handover

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// This file decides whether a value belongs to its expression. It can tell only if the step
// evaluated the expression and the answer shows which part is the result. Otherwise the pack marks
// the value as unverified.

// pairing says whether a value belongs to an expression.
type pairing int

const (
	pairUnknown pairing = iota
	pairConfirmed
	pairRefuted
)

// printCommand matches a pdb command that prints the value of an expression, which is group 1.
var printCommand = regexp.MustCompile(`(?s)^(?:pp?[ \t]+|print[ \t]*\(|!)(.*)$`)

// printedExpression returns the expression that a pdb command evaluates. prints reports whether the
// command certainly prints the expression's value; other commands may print something else.
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

// pairingOf decides whether value, which occurs in the step's output, belongs to expression.
// aliased means that pdb commands may have been redefined.
func pairingOf(s schemas.Step, output, expression, value string, aliased bool) pairing {
	if assignsOnOneLine(output, expression, value) {
		return pairConfirmed
	}
	if s.ToolCall == nil {
		return confirmedIf(expression == s.Observation.Source)
	}
	command := shown.Command(s.ToolCall.Arguments)
	if s.ToolCall.Name != "pdb" {
		return confirmedIf(expression == oneLine(command) || expression == s.ToolCall.Name)
	}
	if expression == oneLine(command) { // the whole answer belongs to it
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
	index, count, allPrint := -1, 0, true // index of the command that evaluates expression; number of such commands
	for i, c := range commands {
		e, prints := printedExpression(c)
		allPrint = allPrint && prints
		if e == expression {
			index, count = i, count+1
		}
	}
	if count != 1 || aliased {
		return pairUnknown
	}
	lines := resultLines(output)
	switch n := len(lines); {
	case len(commands) == 1:
		return pairConfirmed
	case allPrint && n == len(commands): // one line for each command
		if _, found := findWords(lines[index], value, nil); found {
			return pairConfirmed
		}
		return pairRefuted
	case index == len(commands)-1:
		return confirmedIf(strings.HasSuffix(oneLine(strings.Join(lines, "\n")), oneLine(value)))
	case index == 0:
		return confirmedIf(strings.HasPrefix(oneLine(strings.Join(lines, "\n")), oneLine(value)))
	}
	return pairUnknown
}

func confirmedIf(confirmed bool) pairing {
	if confirmed {
		return pairConfirmed
	}
	return pairUnknown
}

// resultLines returns the lines of an answer of pdb that come before the current frame.
func resultLines(output string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if last := len(lines) - 1; strings.HasPrefix(lines[last], "Current frame: ") {
		lines = lines[:last]
	}
	return lines
}

// assignsOnOneLine reports whether a line has the form "expression = value" or similar.
func assignsOnOneLine(output, expression, value string) bool {
	e, v := strings.Fields(expression), strings.Fields(value)
	for i := range e {
		e[i] = regexp.QuoteMeta(e[i])
	}
	for i := range v {
		v[i] = regexp.QuoteMeta(v[i])
	}
	re, err := regexp.Compile(`(?m)^(?:E +)?(?:[^\pL\pN_\n]*[^\pL\pN_.\n])?` + strings.Join(e, `[ \t]+`) + `[ \t]*(?:==?|:|->)[ \t]*` + strings.Join(v, `\s+`) + `[ \t,;]*$`)
	return err == nil && re.MatchString(output)
}
