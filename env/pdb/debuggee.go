package pdb

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

// debuggee is the program under the debugger, with the state that lasts from one run to the
// next. It is not safe for concurrent use.
type debuggee struct {
	cfg Config

	entrypoint    string // of the current session, or of the next one if there is none
	lastStarted   string // the last entrypoint that started successfully, used again after one that did not
	session       *session
	breakpoints   registry
	started       bool   // a program has run since the last reset
	restartReason string // sentence for the observation of the next start
}

func newDebuggee(cfg Config) *debuggee {
	return &debuggee{cfg: cfg, entrypoint: cfg.Entrypoint, lastStarted: cfg.Entrypoint, breakpoints: registry{root: cfg.Workdir}}
}

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

// frame returns the current frame, nil if the program is not running.
func (d *debuggee) frame() *schemas.Frame {
	if !d.running() {
		return nil
	}
	st := d.session.state
	return &schemas.Frame{File: st.File, Line: st.Line, Function: st.Function, Event: st.Event, Depth: st.Depth}
}
