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

// Config of a Debugger. Sandbox, Workdir and Entrypoint are required.
type Config struct {
	Sandbox    env.Sandbox
	Workdir    string // absolute path of the workspace in the sandbox
	Entrypoint string // shell command line of the program, see schemas.Task.DebugEntrypoint
	Env        []string

	Timeout   time.Duration // of a command that brings none; 0 = 60 s
	Grace     time.Duration // beyond a timeout: for the prompt after the interrupt; 0 = 500 ms
	MaxOutput int           // bytes of output shown per command; 0 = 20000
	Context   int           // source lines shown before and after the current one; 0 = 5
}

// Debugger implements env.Debugger. Its methods may be called from several
// goroutines; commands run one after the other.
type Debugger struct {
	cfg Config

	mu          sync.Mutex
	entrypoint  string // of the session, or of the next one
	worked      string // the entrypoint that started last, to go back to
	session     *session
	breakpoints registry
	started     bool   // a program ran since the last reset
	why         string // said at the next start: why there is a new one
}

var _ env.Debugger = (*Debugger)(nil)

// New returns a Debugger. Nothing starts before the first command needs it.
func New(cfg Config) *Debugger {
	cfg.Timeout = orDefault(cfg.Timeout, 60*time.Second)
	cfg.Grace = orDefault(cfg.Grace, 500*time.Millisecond)
	cfg.MaxOutput = orDefault(cfg.MaxOutput, 20000)
	cfg.Context = orDefault(cfg.Context, 5)
	return &Debugger{cfg: cfg, entrypoint: cfg.Entrypoint, worked: cfg.Entrypoint, breakpoints: registry{root: cfg.Workdir}}
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Command runs what one tool call asks for. The reply's Text is the whole
// observation. An error means that the sandbox failed, never the model.
func (d *Debugger) Command(ctx context.Context, asked env.DebuggerCommand) (env.DebuggerReply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
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
			c.say("The limit of output was reached.")
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

// end closes the session, if there is one.
func (d *Debugger) end(ctx context.Context) error {
	s := d.session
	d.session = nil
	if s == nil || s.ended {
		return nil
	}
	return s.close(ctx)
}

// Breakpoints lists the registry by file and line.
func (d *Debugger) Breakpoints() []schemas.Breakpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.breakpoints.list()
}

// Frame is where the debugger stands; nil when no program runs.
func (d *Debugger) Frame() *schemas.Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frame()
}

func (d *Debugger) frame() *schemas.Frame {
	if d.session == nil || d.session.ended {
		return nil
	}
	at := d.session.at
	return &schemas.Frame{File: at.File, Line: at.Line, Function: at.Function, Event: at.Event, Depth: at.Depth}
}

// Edited moves breakpoints with an edit. The program that runs is the old one:
// the next command starts the new one.
func (d *Debugger) Edited(e env.Edit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.breakpoints.edited(e)
	if d.session != nil && !d.session.ended {
		d.session.stale = true
	}
}

// Reset ends the session; clear drops the breakpoints and goes back to the
// entrypoint of the configuration.
func (d *Debugger) Reset(ctx context.Context, clear bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if clear {
		d.breakpoints, d.entrypoint, d.worked = registry{root: d.cfg.Workdir}, d.cfg.Entrypoint, d.cfg.Entrypoint
	}
	d.why, d.started = "", false
	return d.end(ctx)
}

// Close ends the session. The Debugger may be used again afterwards.
func (d *Debugger) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end(ctx)
}
