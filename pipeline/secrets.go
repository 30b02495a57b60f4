package pipeline

import (
	"errors"
	"slices"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// Clean removes the secrets from a text and leaves everything else as it is.
func (c *Config) Clean(text string) string {
	red := redact.New(c.Normalise.Secrets)
	out := red.Text(text)
	if red = red.Wiser(c.Normalise.Secrets); red != nil {
		return red.Text(text)
	}
	return out
}

// keepNoSecrets removes the secrets from what the run directory keeps of the configuration. It
// refuses a run whose ID holds one before anything is paid for: the ID is in every row, so that
// no episode could be staged.
func (c *Config) keepNoSecrets() error {
	if c.Clean(c.RunID) != c.RunID {
		return &StopError{Code: 2, Err: errors.New("the name of the run looks like a secret"), Remedy: "choose another run.name: it stands in every row"}
	}
	c.Resolved = []byte(c.Clean(string(c.Resolved)))
	c.Command = slices.Clone(c.Command)
	for i, word := range c.Command {
		c.Command[i] = c.Clean(word)
	}
	return nil
}

// public returns the text of an error as it may be kept.
func (c *Config) public(text string) string { return c.Clean(schemas.Plain(text)) }
