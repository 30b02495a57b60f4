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

// Environment implements Env. It has at most one sandbox at a time. Reset starts a
// session, which has a sandbox with a workspace and a debugger. Step passes a call to the
// toolbox and then notifies the tools of the edits that the call made. Every result
// includes the state of the session at that time.
type Environment struct {
	cfg  Config
	sess *Session // nil before the first Reset and after Close

	debugger   *trackedDebugger // sess.Debugger
	eval       *EvalReport      // of the last evaluation since Reset
	terminated bool
	edits      []Edit                // made by the current step
	leftOut    []schemas.OmittedFile // files that the last Patch left out
}

var (
	_ Env          = (*Environment)(nil)
	_ BaseHasher   = (*Environment)(nil)
	_ PatchTrimmer = (*Environment)(nil)
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

	triggered, err := e.cfg.Toolbox.Notify(ctx, e.sess, Event{Kind: EventReset})
	if err != nil {
		return Info{}, fmt.Errorf("resetting the tools: %w", err)
	}
	text := e.cfg.Task.Instructions
	obs := schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text))}
	info := e.info(obs, triggered, began)
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
		return e.info(episodeEnded(), nil, began), nil
	}
	e.edits = nil
	obs, err := e.cfg.Toolbox.Call(ctx, e.sess, call)
	if err != nil {
		return e.fail(err, obs, began)
	}
	var triggered []schemas.Observation
	for _, edit := range e.edits {
		more, err := e.cfg.Toolbox.Notify(ctx, e.sess, Event{Kind: EventFileChange, Edit: &edit})
		triggered = append(triggered, more...)
		if err != nil {
			return e.fail(err, obs, began)
		}
	}
	return e.info(obs, triggered, began), nil
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
		return e.info(episodeEnded(), nil, time.Now()), nil
	}
	return e.info(errorObservation(schemas.ErrNoToolCall,
		"Your reply called no tool, so nothing happened. Call one tool in every reply; when the bug is fixed, call submit."),
		nil, time.Now()), nil
}

// episodeEnded answers a call after the end of the episode.
func episodeEnded() schemas.Observation {
	return errorObservation(schemas.ErrUserError, "The episode has ended, so this call was not run. Reset the environment to begin a new one.")
}

func errorObservation(class, text string) schemas.Observation {
	return schemas.Observation{Source: "env", Text: text, IsError: true, ErrorClass: class, FullBytes: int64(len(text))}
}

// fail returns err with the state of the session. If the sandbox died, fail also ends the
// episode and replaces obs.
func (e *Environment) fail(err error, obs schemas.Observation, began time.Time) (Info, error) {
	if errors.Is(err, ErrSandboxDied) {
		e.terminated = true
		obs = errorObservation(schemas.ErrSandboxDied, "The sandbox died while this call was running, and everything in it is lost.")
	}
	return e.info(obs, nil, began), err
}

// info returns the current state of the session, the observation of a call and those of
// the tools that were notified.
func (e *Environment) info(obs schemas.Observation, triggered []schemas.Observation, began time.Time) Info {
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
		Observation: obs, Observations: append([]schemas.Observation{obs}, triggered...),
		State: state, Wall: time.Since(began),
	}
}

// eventFinished is the debugger event that reports the end of the program.
const eventFinished = "finished"

// trackedDebugger is a Debugger that records whether its program has ended. If Frame is nil,
// the program has either ended or not started yet.
type trackedDebugger struct {
	Debugger
	finished bool
}

// Command implements Debugger.
func (d *trackedDebugger) Command(ctx context.Context, c DebuggerCommand) (DebuggerReply, error) {
	reply, err := d.Debugger.Command(ctx, c)
	if reply.Frame != nil {
		d.finished = reply.Frame.Event == eventFinished
	}
	return reply, err
}

// Reset implements Debugger.
func (d *trackedDebugger) Reset(ctx context.Context, clear bool) error {
	d.finished = false
	return d.Debugger.Reset(ctx, clear)
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
			patch, treeSHA, e.leftOut, err = e.cfg.Workspace.Diff(ctx, e.cfg.Tree, r)
			return err
		},
	)
	if err != nil {
		return nil, "", fmt.Errorf("reading the patch: %w", err)
	}
	return patch, treeSHA, nil
}

// LeftOut implements PatchTrimmer.
func (e *Environment) LeftOut() []schemas.OmittedFile { return e.leftOut }

// Base implements BaseHasher.
func (e *Environment) Base(ctx context.Context) (string, error) {
	hashing, ok := e.cfg.Workspace.(TreeHasher)
	if !ok {
		return "", nil
	}
	return hashing.Base(ctx, e.cfg.Tree)
}

// Key describes how the current sandbox is isolated. It is zero if there is no sandbox.
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
	return errors.Join(s.closeLocals(), ignoreDied(s.Debugger.Close(ctx)), ignoreDied(s.Sandbox.Close(ctx)))
}

// ignoreDied returns err, or nil if err is ErrSandboxDied, because then there is nothing
// left to close.
func ignoreDied(err error) error {
	if errors.Is(err, ErrSandboxDied) {
		return nil
	}
	return err
}
