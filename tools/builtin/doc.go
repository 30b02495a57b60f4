// Package builtin holds the tools an agent debugs with, one file each, every one
// registered in tools.Registry. They see a sandbox through env.Session only; a
// path they are given is below the workspace, and a mistake of the model is
// answered with what to do instead.
//
// It imports tools, env, schemas, and env/framing for the shell.
package builtin

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/tools"
)

// register adds a tool that needs no configuration.
func register(summary string, t tools.Tool) {
	tools.Registry.Register(plugin.Spec[tools.Tool, struct{}]{
		Kind: t.Schema().Name, Summary: summary,
		New: func(any, struct{}) (tools.Tool, error) { return t, nil },
	})
}
