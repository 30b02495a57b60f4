package pipeline

import (
	"errors"
	"slices"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// Clean replaces the secrets in a text. The first pass can recognize a value only at some of its
// places. If it recognized any, a second pass replaces these values everywhere.
func (c *Config) Clean(text string) string {
	red := redact.New(c.Normalise.Secrets)
	out := red.Text(text)
	if red = red.WithLearned(c.Normalise.Secrets); red != nil {
		return red.Text(text)
	}
	return out
}

// redactConfig removes secrets from the parts of the configuration that the run directory
// keeps. It returns an error if the run ID contains a secret: the ID is part of every row, so no
// episode of the run could be staged.
func (c *Config) redactConfig() error {
	if c.Clean(c.RunID) != c.RunID {
		return &StopError{Code: 2, Err: errors.New("the name of the run looks like a secret"), Remedy: "choose another run.name: it appears in every row"}
	}
	c.Resolved = []byte(c.Clean(string(c.Resolved)))
	c.Command = slices.Clone(c.Command)
	for i, word := range c.Command {
		c.Command[i] = c.Clean(word)
	}
	return nil
}

// public returns an error text without secrets and control characters, for files and reports.
func (c *Config) public(text string) string { return c.Clean(schemas.Plain(text)) }
