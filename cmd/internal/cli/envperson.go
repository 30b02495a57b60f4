package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/schemas"
)

// runHuman runs the agent human, without limits, in the environment of loop. Then it prints
// the patch and its verdict.
func runHuman(ctx context.Context, s *State, cfg configs.Config, task schemas.Task, loop *envLoop, tools []schemas.ToolSchema) error {
	cfg.Agent.Kind, cfg.Agent.With = "human", nil
	agent, err := wire.NewAgent(cfg, s.Getenv)
	if err != nil {
		return Usage(err)
	}
	agent.Console = wire.NewConsole(s.Stdin, s.Stdout)
	if err := agent.Offer(tools); err != nil {
		return Usage(err)
	}
	policy, err := agent.Policy(schemas.Job{}, task)
	if err != nil {
		return Usage(err)
	}
	result, err := agents.Run(ctx, agents.Config{Env: loop.env, Policy: policy, Task: task})
	if infra, ok := errors.AsType[*agents.InfraError](err); ok {
		err = infra.Err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && len(result.Steps) == 0:
		return &Error{Code: ExitPreflight, Err: err}
	case err != nil:
		return err
	}
	loop.last.OK = true // Run has reset the environment
	a := loop.patch(ctx)
	if a.OK && *a.Patch != "" {
		fmt.Fprintln(s.Stdout, *a.Patch)
		a = loop.verdict(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !a.OK:
		return errors.New(a.Error)
	case a.Verdict == nil:
		_, err = fmt.Fprintln(s.Stdout, unchanged)
	default:
		_, err = fmt.Fprintln(s.Stdout, verdictLine(*a.Verdict))
	}
	if err != nil {
		return answerError(err)
	}
	return nil
}
