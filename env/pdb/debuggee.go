package pdb

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

// debuggee is the program under the debugger, from one run to the next. Its owner
// serializes the calls.
type debuggee struct {
	cfg Config

	entrypoint  string // of the session, or of the next one
	worked      string // the entrypoint that last started, to go back to
	session     *session
	breakpoints registry
	started     bool   // a program has run since the last reset
	why         string // why the next start begins a new session, for the observation
}

func newDebuggee(cfg Config) *debuggee {
	return &debuggee{cfg: cfg, entrypoint: cfg.Entrypoint, worked: cfg.Entrypoint, breakpoints: registry{root: cfg.Workdir}}
}

// running reports whether a program runs.
func (d *debuggee) running() bool { return d.session != nil && !d.session.ended }

// end closes the session, if there is one.
func (d *debuggee) end(ctx context.Context) error {
	s := d.session
	d.session = nil
	if s == nil || s.ended {
		return nil
	}
	return s.close(ctx)
}

// frame is the current frame, nil if no program runs.
func (d *debuggee) frame() *schemas.Frame {
	if !d.running() {
		return nil
	}
	at := d.session.at
	return &schemas.Frame{File: at.File, Line: at.Line, Function: at.Function, Event: at.Event, Depth: at.Depth}
}
