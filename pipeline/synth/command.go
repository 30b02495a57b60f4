package synth

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

// The test runners that the factory supports.
const (
	runPytest   = "pytest"
	runUnittest = "unittest"
)

// command is a parsed entrypoint: one call of a test runner.
type command struct {
	runner string
	argv   []string
	module bool              // started with python -m, which adds the working directory to sys.path
	env    map[string]string // variables that the command sets
}

var assignment = regexp.MustCompile(`^([A-Za-z_]\w*)=(.*)$`)

// parseCommand parses "[env] [NAME=value ...] python -m pytest|unittest ARGS" or
// "[env] [NAME=value ...] pytest ARGS". It returns a RepoError for anything else, because
// the factory runs the tests without a shell.
func parseCommand(line string) (command, error) {
	invalid := func(what string) error {
		return &RepoError{Kind: ErrEntrypoint, Detail: fmt.Sprintf("%q: %s", line, what), Remedy: `use a command such as "python -m pytest -q" or "python -m unittest"`}
	}
	words, err := splitWords(line)
	if err != nil {
		return command{}, invalid(err.Error())
	}
	c := command{env: map[string]string{}}
	if len(words) > 0 && words[0] == "env" { // "env NAME=value command" means the same as "NAME=value command"
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
		return c, invalid("it contains no program to run")
	}
	program := path.Base(words[0])
	words = words[1:]
	if strings.HasPrefix(program, "python") {
		for len(words) > 0 && (words[0] == "-B" || words[0] == "-u") {
			words = words[1:]
		}
		if len(words) < 2 || words[0] != "-m" {
			return c, invalid("it does not run pytest or unittest with -m")
		}
		program, words, c.module = words[1], words[2:], true
	}
	switch program {
	case "pytest", "py.test":
		c.runner = runPytest
	case "unittest":
		c.runner = runUnittest
	default:
		return c, invalid("it does not run pytest or unittest")
	}
	c.argv = words
	return c, nil
}

// splitWords splits a line into words like a shell. It returns an error if the line uses
// other shell syntax.
func splitWords(line string) ([]string, error) {
	words, err := shellwords.Split(line)
	switch {
	case errors.Is(err, shellwords.ErrUnclosed):
		return nil, errors.New("a quote is not closed")
	case errors.Is(err, shellwords.ErrTooLong):
		return nil, err
	}
	var out []string
	for _, w := range words {
		if w.Expands || !w.Fixed && strings.ContainsAny(w.Raw, "*?") {
			err = shellwords.ErrNoWord
		}
		out = append(out, w.Text)
	}
	if err != nil {
		return nil, errors.New("it needs a shell")
	}
	return out, nil
}
