package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// checkSandbox checks a sandbox like those of agents: whether it reveals the fix, and whether the debugger answers.
func (c *checker) checkSandbox(ctx context.Context) (found finding, err error) {
	spec, t := c.Spec, c.task
	t = t.Public()
	t.Workdir = cmp.Or(spec.Workdir, t.Workdir, schemas.DefaultWorkdir)
	spec.Workdir, spec.Image, spec.Python = t.Workdir, cmp.Or(spec.Image, t.Image), cmp.Or(spec.Python, t.Python)
	sb, err := c.Driver.Start(ctx, spec)
	if err != nil {
		return found, fmt.Errorf("starting a %s sandbox: %w", c.Driver.Name(), err)
	}
	defer func() {
		closeErr := sb.Close(context.WithoutCancel(ctx))
		if err == nil && closeErr != nil && !errors.Is(closeErr, env.ErrSandboxDied) {
			err = fmt.Errorf("closing sandbox: %w", closeErr)
		}
	}()
	t.Workdir = env.WorkdirOf(sb, t.Workdir)
	if err := c.placeRepository(ctx, sb, t.Workdir); err != nil {
		return found, err
	}
	if found, err = c.findLeaks(ctx, sb, t); err != nil || found.status != "" {
		return found, err
	}
	if t.Entrypoint == "" && t.DebugEntrypoint == "" {
		return finding{}, nil
	}
	return c.tryDebugger(ctx, sb, t)
}

// placeRepository unpacks the repository, with the .git directory that agents get.
func (c *checker) placeRepository(ctx context.Context, sb env.Sandbox, dir string) error {
	err := env.Stream(
		func(w io.Writer) error { return c.Store.Placement(ctx, c.tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, dir, r) },
	)
	if err != nil {
		return fmt.Errorf("placing the repository: %w", err)
	}
	return nil
}

// tryDebugger starts the entrypoint in the debugger and sends two commands.
func (c *checker) tryDebugger(ctx context.Context, sb env.Sandbox, t schemas.Task) (found finding, err error) {
	d := c.NewDebugger(sb, t)
	defer func() { err = errors.Join(err, d.Close(context.WithoutCancel(ctx))) }()
	for _, question := range []struct{ command, answer string }{{"p 6 * 7", "42"}, {"where", ""}} {
		reply, err := d.Command(ctx, env.DebuggerCommand{Text: question.command})
		if errors.Is(err, env.ErrSandboxDied) && ctx.Err() == nil {
			return finding{PDBSilent, "the sandbox died under the debugger"}, nil
		}
		if err != nil {
			return finding{}, err
		}
		if reply.IsError || reply.TimedOut || reply.Frame == nil || !strings.Contains(reply.Text, question.answer) {
			line, _, _ := strings.Cut(strings.TrimSpace(reply.Text), "\n")
			return finding{PDBSilent, fmt.Sprintf("%s: %s", question.command, line)}, nil
		}
		c.rep.PDB = fmt.Sprintf("%s:%d %s", reply.Frame.File, reply.Frame.Line, reply.Frame.Function)
	}
	return finding{}, nil
}
