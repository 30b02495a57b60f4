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

// Debugger implements env.Debugger. It is safe for concurrent use; commands run one after the
// other.
type Debugger struct {
	mu sync.Mutex
	d  *debuggee
}

var _ env.Debugger = (*Debugger)(nil)

// New returns a Debugger. It starts nothing before the first command that needs a program.
func New(cfg Config) *Debugger { return &Debugger{d: newDebuggee(cfg.withDefaults())} }

// Command runs the commands of one tool call. The reply's Text is the whole observation. An
// error means that the sandbox failed, never that the model made a mistake.
func (g *Debugger) Command(ctx context.Context, asked env.DebuggerCommand) (env.DebuggerReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.d
	timeout := orDefault(asked.Timeout, d.cfg.Timeout)
	commands := split(asked.Text)
	if len(commands) == 0 {
		return env.DebuggerReply{IsError: true, Frame: d.frame(), Text: "The command is empty. Send a pdb command, for example: " +
			"b FILE:LINE, c, n, s, w, p EXPRESSION."}, nil
	}
	c := &call{d: d, timeout: timeout, deadline: time.Now().Add(timeout), bare: asked.NoListing, forget: asked.Forget}
	ctx = env.AnswerBy(ctx, c.deadline)
	if err := c.use(ctx, strings.TrimSpace(asked.Entrypoint)); err != nil {
		return env.DebuggerReply{}, err
	}
	for i, line := range commands {
		if c.size > d.cfg.MaxOutput {
			c.say("The output limit was reached.")
			c.stop = true
		}
		if c.stop {
			if i > 0 {
				c.say("Not run: %s", strings.Join(commands[i:], " ;; "))
			}
			break
		}
		if err := c.run(ctx, line); err != nil {
			return env.DebuggerReply{}, errors.Join(err, d.end(ctx))
		}
	}
	return c.reply(), nil
}

// Breakpoints lists the breakpoints by file and line.
func (g *Debugger) Breakpoints() []schemas.Breakpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.breakpoints.list()
}

// Frame is the current frame, nil if no program runs.
func (g *Debugger) Frame() *schemas.Frame {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.frame()
}

// Edited moves breakpoints with an edit. A running program has the old code, so the next
// command starts a new one.
func (g *Debugger) Edited(e env.Edit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.d.breakpoints.edited(e)
	if g.d.running() {
		g.d.session.stale = true
	}
}

// Reset ends the session. clear also removes the breakpoints and returns to the entrypoint of
// the configuration.
func (g *Debugger) Reset(ctx context.Context, clear bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.d.end(ctx)
	if clear {
		g.d = newDebuggee(g.d.cfg)
	}
	g.d.why, g.d.started = "", false
	return err
}

// Close ends the session. The Debugger may be used again afterwards.
func (g *Debugger) Close(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.d.end(ctx)
}
