package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Environment implements Env and owns at most one sandbox at a time. Reset starts a
// session (sandbox, debugger, workspace). Step passes a call to the toolbox, then
// notifies the tools of the edits that the call made. Each step returns the state of
// the session after it.
type Environment struct {
	cfg  Config
	sess *Session // nil before the first Reset and after Close

	debugger   *trackedDebugger // sess.Debugger
	eval       *EvalReport      // of the last evaluation since Reset
	terminated bool
	edits      []Edit            // made by the current step
	left       []schemas.LeftOut // files that the last Patch left out
}

var (
	_ Env      = (*Environment)(nil)
	_ Based    = (*Environment)(nil)
	_ Trimming = (*Environment)(nil)
)

// closeTimeout limits how long closing a debugger and its sandbox may take.
const closeTimeout = 15 * time.Second

// New checks cfg and returns an Environment without a sandbox. Reset starts the sandbox.
func New(cfg Config) (*Environment, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Environment{cfg: cfg.withDefaults()}, nil
}

// Reset implements Env. It ignores soft if there is no session. After an error there is
// no session, and the caller can only call Reset again or Close.
func (e *Environment) Reset(ctx context.Context, soft bool) (Info, error) {
	info, err := e.reset(ctx, soft)
	if err != nil {
		return Info{}, errors.Join(err, e.Close(ctx))
	}
	return info, nil
}

func (e *Environment) reset(ctx context.Context, soft bool) (Info, error) {
	began := time.Now()
	if soft && e.sess != nil {
		if _, err := e.sess.Sandbox.Stat(ctx, e.sess.Workdir); err != nil {
			return Info{}, fmt.Errorf("the sandbox cannot be kept, so a soft reset is impossible: %w", err)
		}
		if err := e.sess.Debugger.Reset(ctx, true); err != nil {
			return Info{}, fmt.Errorf("resetting the debugger: %w", err)
		}
	} else if err := e.start(ctx); err != nil {
		return Info{}, err
	}
	e.eval, e.terminated, e.edits = nil, false, nil

	said, err := e.cfg.Toolbox.Notify(ctx, e.sess, Event{Kind: EventReset})
	if err != nil {
		return Info{}, fmt.Errorf("resetting the tools: %w", err)
	}
	text := e.cfg.Task.Instructions
	own := schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text))}
	info := e.info(own, said, began)
	info.Tools = e.cfg.Toolbox.Schemas()
	return info, nil
}

// start replaces the session with one in a fresh sandbox.
func (e *Environment) start(ctx context.Context) error {
	if err := e.Close(ctx); err != nil {
		return fmt.Errorf("closing the old sandbox: %w", err)
	}
	sb, err := e.cfg.Driver.Start(ctx, e.cfg.Spec)
	if err != nil {
		return err // the driver's error already says what it was starting and what to do
	}
	if err := e.place(ctx, sb); err != nil {
		return errors.Join(fmt.Errorf("placing the workspace: %w", err), sb.Close(context.WithoutCancel(ctx)))
	}
	task := e.cfg.Task
	task.Workdir = WorkdirOf(sb, e.cfg.Spec.Workdir)
	e.debugger = &trackedDebugger{Debugger: e.cfg.NewDebugger(sb, task)}
	e.sess = &Session{
		Task: task, Sandbox: sb, Debugger: e.debugger,
		Workdir: task.Workdir, CommandTimeout: e.cfg.CommandTimeout,
		Eval:   e.evaluate,
		Submit: func() { e.terminated = true },
		FileChanged: func(_ context.Context, edit Edit) {
			e.sess.Debugger.Edited(edit)
			e.edits = append(e.edits, edit)
		},
	}
	return nil
}

func (e *Environment) place(ctx context.Context, sb Sandbox) error {
	return Stream(
		func(w io.Writer) error { return e.cfg.Workspace.Placement(ctx, e.cfg.Tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, e.cfg.Spec.Workdir, r) },
	)
}

func (e *Environment) evaluate(ctx context.Context, limit time.Duration) (EvalReport, error) {
	report, err := e.cfg.Evaluate(ctx, e.sess.Sandbox, e.sess.Task, limit)
	if err != nil {
		return report, fmt.Errorf("running the tests: %w", err)
	}
	e.eval = &report
	return report, nil
}

// Step implements Env. After the end of the episode it executes nothing and returns
// an observation that says so. If the sandbox dies, it returns ErrSandboxDied and an
// Info whose observation says so.
func (e *Environment) Step(ctx context.Context, call schemas.ToolCall) (Info, error) {
	began := time.Now()
	switch {
	case e.sess == nil:
		return Info{}, errors.New("step before reset")
	case e.terminated:
		return e.info(ended(), nil, began), nil
	}
	e.edits = nil
	own, err := e.cfg.Toolbox.Call(ctx, e.sess, call)
	if err != nil {
		return e.failed(err, own, began)
	}
	var said []schemas.Observation
	for _, edit := range e.edits {
		more, err := e.cfg.Toolbox.Notify(ctx, e.sess, Event{Kind: EventFileChange, Edit: &edit})
		said = append(said, more...)
		if err != nil {
			return e.failed(err, own, began)
		}
	}
	return e.info(own, said, began), nil
}

// Repeat implements Env.
func (e *Environment) Repeat(ctx context.Context, call schemas.ToolCall, recorded schemas.Observation) (Info, error) {
	if e.sess != nil {
		e.sess.Recorded = &recorded
		defer func() { e.sess.Recorded = nil }()
	}
	return e.Step(ctx, call)
}

// NoCall implements Env.
func (e *Environment) NoCall(context.Context) (Info, error) {
	switch {
	case e.sess == nil:
		return Info{}, errors.New("step before reset")
	case e.terminated:
		return e.info(ended(), nil, time.Now()), nil
	}
	return e.info(notRun(schemas.ErrNoToolCall,
		"Your reply called no tool, so nothing happened. Call one tool in every reply; when the bug is fixed, call submit."),
		nil, time.Now()), nil
}

func ended() schemas.Observation {
	return notRun(schemas.ErrUserError, "The episode has ended, so this call was not run. Reset the environment to begin a new one.")
}

func notRun(class, text string) schemas.Observation {
	return schemas.Observation{Source: "env", Text: text, IsError: true, ErrorClass: class, FullBytes: int64(len(text))}
}

// failed returns err with the state of the session. If the sandbox died, it ends the
// episode; the caller decides what caused that.
func (e *Environment) failed(err error, own schemas.Observation, began time.Time) (Info, error) {
	if errors.Is(err, ErrSandboxDied) {
		e.terminated = true
		own = notRun(schemas.ErrSandboxDied, "The sandbox died while this call was running, and everything in it is lost.")
	}
	return e.info(own, nil, began), err
}

// info returns the observations of a step with the state of the session after it.
func (e *Environment) info(own schemas.Observation, said []schemas.Observation, began time.Time) Info {
	state := schemas.EnvState{
		Terminated:  e.terminated,
		Breakpoints: e.sess.Debugger.Breakpoints(),
		Frame:       e.sess.Debugger.Frame(),
	}
	if state.Frame != nil {
		state.DebuggerEvent = state.Frame.Event
	} else if e.debugger.finished {
		state.DebuggerEvent = eventFinished
	}
	if state.Breakpoints == nil {
		state.Breakpoints = []schemas.Breakpoint{}
	}
	for _, edit := range e.edits {
		if !slices.Contains(state.FilesChanged, edit.File) {
			state.FilesChanged = append(state.FilesChanged, edit.File)
		}
	}
	if r := e.eval; r != nil {
		state.Score, state.MaxScore, state.EvalPassed = r.Score, &r.Max, &r.Passed
		if len(r.Tests) > 0 {
			passed, failed := r.Counts()
			state.TestsPassed, state.TestsFailed = &passed, &failed
		}
	}
	return Info{
		Observation: own, Observations: append([]schemas.Observation{own}, said...),
		State: state, Wall: time.Since(began),
	}
}

// eventFinished is the debugger event that reports the end of the program.
const eventFinished = "finished"

// trackedDebugger is a Debugger that records whether its program has ended. A missing frame
// alone does not tell: the program may not have started yet.
type trackedDebugger struct {
	Debugger
	finished bool
}

// Command implements Debugger.
func (w *trackedDebugger) Command(ctx context.Context, c DebuggerCommand) (DebuggerReply, error) {
	reply, err := w.Debugger.Command(ctx, c)
	if reply.Frame != nil {
		w.finished = reply.Frame.Event == eventFinished
	}
	return reply, err
}

// Reset implements Debugger.
func (w *trackedDebugger) Reset(ctx context.Context, clear bool) error {
	w.finished = false
	return w.Debugger.Reset(ctx, clear)
}

// Counts returns how many tests passed, and how many failed or had an error.
func (r EvalReport) Counts() (passed, failed int) {
	for _, status := range r.Tests {
		switch status {
		case "passed":
			passed++
		case "failed", "error":
			failed++
		}
	}
	return passed, failed
}

// Patch implements Env.
func (e *Environment) Patch(ctx context.Context) (patch []byte, treeSHA string, err error) {
	if e.sess == nil {
		return nil, "", errors.New("patch before reset")
	}
	err = Stream(
		func(w io.Writer) error { return e.sess.Sandbox.TarOut(ctx, e.sess.Workdir, w) },
		func(r io.Reader) (err error) {
			patch, treeSHA, e.left, err = e.cfg.Workspace.Diff(ctx, e.cfg.Tree, r)
			return err
		},
	)
	if err != nil {
		return nil, "", fmt.Errorf("reading the patch: %w", err)
	}
	return patch, treeSHA, nil
}

// LeftOut implements Trimming.
func (e *Environment) LeftOut() []schemas.LeftOut { return e.left }

// Base implements Based.
func (e *Environment) Base(ctx context.Context) (string, error) {
	store, ok := e.cfg.Workspace.(Hashing)
	if !ok {
		return "", nil
	}
	return store.Base(ctx, e.cfg.Tree)
}

// Key returns how the current sandbox is isolated. It is zero if there is no sandbox.
func (e *Environment) Key() schemas.EnvKey {
	if e.sess == nil {
		return schemas.EnvKey{}
	}
	return e.sess.Sandbox.Key()
}

// Close ends the debugger and destroys the sandbox, even if ctx is canceled. It is safe to
// call twice.
func (e *Environment) Close(ctx context.Context) error {
	if e.sess == nil {
		return nil
	}
	s := e.sess
	e.sess = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(s.closeLocals(), unlessDied(s.Debugger.Close(ctx)), unlessDied(s.Sandbox.Close(ctx)))
}

// unlessDied returns nil if err says that the sandbox died, because then nothing is left
// to close, and err otherwise.
func unlessDied(err error) error {
	if errors.Is(err, ErrSandboxDied) {
		return nil
	}
	return err
}
