package synth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The kinds of issue texts.
const (
	TextTestRun  = "test-run" // the command that fails
	TextSymptom  = "symptom"  // the action, the result and the expected result
	TextReporter = "reporter" // a user's report, written by a model
)

// Texts lists the kinds of issue texts, the default first.
var Texts = []string{TextSymptom, TextTestRun, TextReporter}

// facts an issue may be told from: nothing of the gold patch.
type issue struct {
	Command  string
	Failures []Failure
	Failing  int // tests
	Total    int
}

// testRun returns the text that only names the failing command.
func (i issue) testRun() string {
	verb := "do"
	if i.Failing == 1 {
		verb = "does"
	}
	return fmt.Sprintf("`%s` fails: %d of %d tests %s not pass. Find the cause in the program and fix it; the tests are correct.", i.Command, i.Failing, i.Total, verb)
}

const maxShown = 200

// symptom describes the behavior in a user's words, from the first failure with enough
// detail; "" if there is none.
func (i issue) symptom() string {
	text := i.noted()
	switch {
	case text == "":
		return ""
	case i.Failing == 2:
		text += " One more check goes wrong."
	case i.Failing > 2:
		text += fmt.Sprintf(" %d more checks go wrong.", i.Failing-1)
	}
	return text + fmt.Sprintf("\n\nThe program should pass its tests (`%s`). Find the cause and fix it.", i.Command)
}

// noted returns what happened in the first failure with enough detail.
func (i issue) noted() string {
	for _, f := range i.Failures {
		if text := f.symptom(); text != "" {
			return text
		}
	}
	return ""
}

func (f Failure) symptom() string {
	calls := callsOf(f.Statement)
	doing := "When I run this:\n\n    " + strings.ReplaceAll(calls, "\n", "\n    ") + "\n\n"
	switch {
	case calls == "" || len(calls) > 600:
		return ""
	case f.Left != "" || f.Right != "":
		got, want := f.Left, f.Right
		if expectedFirst(f.Statement) {
			got, want = want, got
		}
		return doing + fmt.Sprintf("I get `%s`, but `%s` is expected.", clip(got), clip(want))
	case f.Type == "AssertionError" && strings.Contains(f.Message, "not raised"):
		return doing + fmt.Sprintf("nothing happens, but an error is expected (%s).", clip(strings.TrimSuffix(f.Message, " not raised")))
	case f.Type == "AssertionError":
		line := clip(firstLine(f.Message))
		if line == "" {
			return doing + "the answer is not what it should be."
		}
		return doing + fmt.Sprintf("the answer is not what it should be: `%s`.", line)
	}
	return doing + fmt.Sprintf("it ends with `%s`.", clip(strings.Trim(f.Type+": "+firstLine(f.Message), ": ")))
}

var assertCall = regexp.MustCompile(`^(?:await )?(?:self|cls|case|test)\.assert\w+\(`)

// callsOf returns the calls of a test's statement, without the assertion around them.
func callsOf(statement string) string {
	s := strings.TrimSpace(statement)
	if at := assertCall.FindString(s); at != "" && strings.HasSuffix(s, ")") {
		s = strings.TrimSpace(strings.TrimSuffix(s[len(at):], ")"))
		if args := splitArguments(s); len(args) > 0 {
			i := slices.IndexFunc(args, func(a string) bool { return strings.Contains(a, "(") })
			s = args[max(i, 0)]
		}
		return strings.TrimSpace(s)
	}
	if rest, ok := strings.CutPrefix(s, "assert "); ok {
		for _, op := range []string{" == ", " is "} {
			if left, right, found := strings.Cut(rest, op); found {
				if !strings.Contains(left, "(") && strings.Contains(right, "(") {
					return strings.TrimSpace(right)
				}
				return strings.TrimSpace(left)
			}
		}
		return strings.TrimSpace(rest)
	}
	return s
}

// expectedFirst reports whether the first operand of the test's statement is the
// expected value, which is so if it is a plain value and the second operand is a call.
func expectedFirst(statement string) bool {
	s := strings.TrimSpace(statement)
	var left, right string
	if at := assertCall.FindString(s); at != "" {
		args := splitArguments(strings.TrimSuffix(s[len(at):], ")"))
		if len(args) < 2 {
			return false
		}
		left, right = args[0], args[1]
	} else if rest, ok := strings.CutPrefix(s, "assert "); ok {
		left, right, _ = strings.Cut(rest, " == ")
	}
	return !strings.Contains(left, "(") && strings.Contains(right, "(")
}

// splitArguments splits the text between a call's parentheses at its commas.
func splitArguments(text string) []string {
	var out []string
	depth, start := 0, 0
	var quote rune
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

func clip(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
	if utf8.RuneCountInString(text) <= maxShown {
		return text
	}
	return string([]rune(text)[:maxShown-1]) + "…"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
