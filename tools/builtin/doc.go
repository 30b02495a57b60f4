// Package builtin contains the tools with which an agent debugs, one file each, and
// registers them in tools.Registry. The tools use a sandbox only through env.Session and accept
// only paths in the workspace. If a call is wrong, the observation says what to do instead.
package builtin

import (
	"fmt"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/tools"
)

// register registers a tool with settings of type S, whose zero value is the default.
// define returns the tool's definition, or an error if the settings are invalid.
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
