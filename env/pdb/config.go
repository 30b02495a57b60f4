package pdb

import (
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Config of a Debugger. Sandbox, Workdir and Entrypoint are required.
type Config struct {
	Sandbox    env.Sandbox
	Workdir    string   // absolute path of the workspace in the sandbox
	Entrypoint string   // shell command line of the program, see schemas.Task.DebugEntrypoint
	Env        []string // NAME=value, for the program

	Timeout   time.Duration // of commands that set none; 0 = 60 s
	Grace     time.Duration // how long to wait for the prompt after interrupting a program; 0 = 2 s
	MaxOutput int           // bytes of output shown per command; 0 = 20000
	Context   int           // source lines shown before and after the current one; 0 = 5
}

func (c Config) withDefaults() Config {
	c.Timeout = orDefault(c.Timeout, 60*time.Second)
	c.Grace = orDefault(c.Grace, 2*time.Second)
	c.MaxOutput = orDefault(c.MaxOutput, 20000)
	c.Context = orDefault(c.Context, 5)
	return c
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}
