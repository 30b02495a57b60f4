package pdb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Debugger implements env.Debugger. It is safe for concurrent use. Commands run one at a time.
type Debugger struct {
	mu sync.Mutex
	d  *debuggee
}

var _ env.Debugger = (*Debugger)(nil)

// New returns a Debugger. It starts no process before the first command that needs the program.
func New(cfg Config) *Debugger { return &Debugger{d: newDebuggee(cfg.withDefaults())} }

// Command implements env.Debugger.
func (g *Debugger) Command(ctx context.Context, command env.DebuggerCommand) (env.DebuggerReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.d
	timeout := orDefault(command.Timeout, d.cfg.Timeout)
	commands := splitCommands(command.Text)
	if len(commands) == 0 {
		return env.DebuggerReply{IsError: true, Frame: d.frame(), Text: "The command is empty. Send a pdb command, for example: " +
			"b FILE:LINE, c, n, s, w, p EXPRESSION."}, nil
	}
	c := &call{d: d, timeout: timeout, deadline: time.Now().Add(timeout), noListing: command.NoListing, forget: command.Forget}
	ctx = env.AnswerBy(ctx, c.deadline)
	if err := c.switchEntrypoint(ctx, strings.TrimSpace(command.Entrypoint)); err != nil {
		return env.DebuggerReply{}, err
	}
	for i, line := range commands {
		if c.size > d.cfg.MaxOutput {
			c.printf("The output limit was reached.")
			c.stop = true
		}
		if c.stop {
			if i > 0 {
				c.printf("Not run: %s", strings.Join(commands[i:], " ;; "))
			}
			break
		}
		if err := c.run(ctx, line); err != nil {
			return env.DebuggerReply{}, errors.Join(err, d.end(ctx))
		}
	}
	return c.reply(), nil
}

// Breakpoints returns the breakpoints, sorted by file and line.
func (g *Debugger) Breakpoints() []schemas.Breakpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.breakpoints.list()
}

// Frame returns the current frame, nil if no program is running.
func (g *Debugger) Frame() *schemas.Frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.frame()
}

// Edited moves breakpoints with an edit. If a program is running, the next command restarts it,
// so that it runs the new code.
func (g *Debugger) Edited(e env.Edit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.d.breakpoints.edited(e)
	if g.d.running() {
		g.d.session.stale = true
	}
}

// Reset ends the session. If clear is set, it also deletes the breakpoints and returns to the
// entrypoint of the configuration.
func (g *Debugger) Reset(ctx context.Context, clear bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.d.end(ctx)
	if clear {
		g.d = newDebuggee(g.d.cfg)
	}
	g.d.restartReason, g.d.started = "", false
	return err
}

// Close ends the session. The Debugger may be used again afterwards.
func (g *Debugger) Close(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.end(ctx)
}
