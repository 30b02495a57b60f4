package wire

import (
	"context"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// NewTappedEnv is NewEnv with each sandbox that the environment starts shown to
// tap before it is used.
func (w *Workbench) NewTappedEnv(ctx context.Context, t schemas.Task, tap func(env.Sandbox)) (env.Env, error) {
	return w.newEnv(ctx, t, tapped{w.Driver(t), tap})
}

type tapped struct {
	env.Driver
	tap func(env.Sandbox)
}

func (d tapped) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := d.Driver.Start(ctx, spec)
	if err == nil {
		d.tap(sb)
	}
	return sb, err
}
