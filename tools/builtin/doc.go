// Package builtin holds the tools an agent debugs with, one file each, every one
// registered in tools.Registry. They see a sandbox through env.Session only; a
// path they are given is below the workspace, and a mistake of the model is
// answered with what to do instead.
//
// It imports tools, env, schemas, and env/guest/framing for the shell.
package builtin

import (
	"fmt"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/tools"
)

// register adds a tool: what it is with the settings S. The zero S are its
// defaults; define refuses settings that make no sense.
func register[S interface{ SetupCommands() []string }, A any](summary string, define func(S) (tools.Def[A], error)) {
	var defaults S
	d, err := define(defaults)
	if err != nil {
		panic(fmt.Sprintf("tool %q: its defaults: %v", d.Name, err))
	}
	tools.Registry.Register(plugin.Spec[tools.Tool, struct{}]{
		Kind: d.Name, Summary: summary,
		Default: func() any { return new(S) },
		New: func(cfg any, _ struct{}) (tools.Tool, error) {
			settings := *cfg.(*S)
			d, err := define(settings)
			if err != nil {
				return nil, err
			}
			d.Setup = settings.SetupCommands()
			return tools.Define(d), nil
		},
	})
}
