package handover

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// This file decides whether a value belongs to its expression. If the step evaluated the expression
// and its answer shows which part is the result, this can be checked. Otherwise the pack marks
// the value as unverified.

type pairing int

const (
	pairUnknown pairing = iota
	pairConfirmed
	pairRefuted
)

// printCommand matches a pdb command that prints the value of an expression, which is group 1.
var printCommand = regexp.MustCompile(`(?s)^(?:pp?[ \t]+|print[ \t]*\(|!)(.*)$`)

// printedExpression returns the expression that a pdb command evaluates. prints reports whether the
// command is sure to print its value; other commands may print something else.
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

// pairingOf decides whether value, which was found in said, belongs to expression. aliased says
// that pdb commands may have been redefined.
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
	if expression == oneLine(command) { // all of the answer belongs to it
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
	case allPrint && n == len(commands): // one line for each command
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

// resultLines returns the lines of an answer of pdb that come before the current frame.
func resultLines(said string) []string {
	lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
	if last := len(lines) - 1; strings.HasPrefix(lines[last], "Current frame: ") {
		lines = lines[:last]
	}
	return lines
}

// assignsOnOneLine reports whether a line has the form "expression = value" or similar.
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
