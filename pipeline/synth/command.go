package synth

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Test runners.
const (
	runPytest   = "pytest"
	runUnittest = "unittest"
)

// command is a parsed entrypoint: one call of a test runner.
type command struct {
	runner string
	argv   []string
	module bool // python -m puts the working directory on the module path
	env    map[string]string
}

var assignment = regexp.MustCompile(`^([A-Za-z_]\w*)=(.*)$`)

// parseCommand parses "[env] [NAME=value ...] python -m pytest|unittest ARGS" or "pytest
// ARGS". Anything else is a RepoError, because no shell runs the command.
func parseCommand(line string) (command, error) {
	wrong := func(what string) error {
		return &RepoError{Kind: ErrEntrypoint, Detail: fmt.Sprintf("%q: %s", line, what), Remedy: `give one like "python -m pytest -q" or "python -m unittest"`}
	}
	words, err := splitWords(line)
	if err != nil {
		return command{}, wrong(err.Error())
	}
	c := command{env: map[string]string{}}
	if len(words) > 0 && words[0] == "env" { // it sets variables, as a shell does without it
		words = words[1:]
	}
	for len(words) > 0 {
		m := assignment.FindStringSubmatch(words[0])
		if m == nil {
			break
		}
		c.env[m[1]] = m[2]
		words = words[1:]
	}
	if len(words) == 0 {
		return c, wrong("it runs nothing")
	}
	program := path.Base(words[0])
	words = words[1:]
	if strings.HasPrefix(program, "python") {
		for len(words) > 0 && (words[0] == "-B" || words[0] == "-u") {
			words = words[1:]
		}
		if len(words) < 2 || words[0] != "-m" {
			return c, wrong("it does not run pytest or unittest with -m")
		}
		program, words, c.module = words[1], words[2:], true
	}
	switch program {
	case "pytest", "py.test":
		c.runner = runPytest
	case "unittest":
		c.runner = runUnittest
	default:
		return c, wrong("it does not run pytest or unittest")
	}
	c.argv = words
	return c, nil
}

// splitWords splits a line like a shell, and returns an error for other shell syntax.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	open, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == '"' && (r == '$' || r == '`'):
			return nil, errors.New("it needs a shell")
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		case strings.ContainsRune(";&|<>$`()*?\n", r):
			return nil, errors.New("it needs a shell")
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
