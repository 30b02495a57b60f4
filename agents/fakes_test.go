package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// counterEnv is an environment with a counter: add increments it, read shows it, die kills the sandbox,
// block waits for the context, and submit ends the episode.
type counterEnv struct {
	n        int
	resets   int
	onReset  func()
	done     bool
	calls    []string // executed calls, across resets
	recorded []string // calls of Repeat, each with its recorded answer
	initial  []schemas.Observation
	tools    []schemas.ToolSchema // nil: only add
	passed   *bool
	changed  []string // files that each call changes
	stepErr  error
	resetErr error
}

func (e *counterEnv) Reset(context.Context, bool) (env.Info, error) {
	if e.resetErr != nil {
		return env.Info{}, e.resetErr
	}
	e.n, e.done = 0, false
	e.resets++
	if e.onReset != nil {
		e.onReset()
	}
	if e.tools == nil {
		e.tools = tools("add")
	}
	own := schemas.Observation{Source: "env", Text: "instructions"}
	return env.Info{Observation: own, Observations: append([]schemas.Observation{own}, e.initial...),
		State: schemas.EnvState{EvalPassed: e.passed}, Tools: e.tools}, nil
}

func (e *counterEnv) Repeat(ctx context.Context, c schemas.ToolCall, o schemas.Observation) (env.Info, error) {
	e.recorded = append(e.recorded, c.Name+" "+o.Text)
	return e.Step(ctx, c)
}

func (e *counterEnv) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	e.calls = append(e.calls, c.Name)
	o := schemas.Observation{Source: c.Name, Text: "ok", FullText: "uncut"}
	switch {
	case e.stepErr != nil:
		return env.Info{}, e.stepErr
	case c.Invalid != "":
		o = schemas.Observation{Source: c.Name, Text: c.Invalid, IsError: true, ErrorClass: schemas.ErrBadArguments}
	case c.Name == "ghost":
		o = schemas.Observation{Source: "env", Text: "no such tool", IsError: true, ErrorClass: schemas.ErrUnknownTool}
	case c.Name == "add":
		e.n++
		o.Text = fmt.Sprint(e.n)
	case c.Name == "read":
		o.Text = fmt.Sprintf("n is %d, in %d.%ds", e.n, e.resets, e.n)
	case c.Name == "die":
		return env.Info{State: schemas.EnvState{Terminated: true}}, fmt.Errorf("tool die: %w", env.ErrSandboxDied)
	case c.Name == "block":
		<-ctx.Done()
		return env.Info{}, ctx.Err()
	case c.Name == "submit":
		e.done = true
	}
	return env.Info{Observation: o, Observations: []schemas.Observation{o, {Source: "x", Text: "more", FullText: "uncut"}},
		State: schemas.EnvState{Terminated: e.done, FilesChanged: e.changed}, Wall: 3 * time.Millisecond}, nil
}

func (e *counterEnv) NoCall(context.Context) (env.Info, error) {
	return env.Info{Observation: schemas.Observation{Source: "env", Text: "call a tool", IsError: true, ErrorClass: schemas.ErrNoToolCall}}, nil
}
func (e *counterEnv) Patch(context.Context) ([]byte, string, error) { return nil, "", nil }
func (e *counterEnv) Key() schemas.EnvKey                           { return schemas.EnvKey{} }
func (e *counterEnv) Close(context.Context) error                   { return nil }

// scriptedPolicy is a policy with fixed turns. The number of replies in the transcript selects the turn, and
// the last turn repeats.
type scriptedPolicy struct {
	turns  []any // schemas.Reply, error, or func(context.Context, *agents.Transcript) (schemas.Reply, error)
	policy string
	asked  []int // numbers of the turns that Next was called for
}

func (p *scriptedPolicy) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "plan", Policy: p.policy}
}
func (p *scriptedPolicy) Prompts(*agents.Transcript) (string, string, error) {
	return "sys", "problem", nil
}
func (p *scriptedPolicy) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	n := 0
	for _, s := range t.Steps {
		if s.Reply != nil {
			n++
		}
	}
	p.asked = append(p.asked, n)
	if n >= len(p.turns) {
		n = len(p.turns) - 1
	}
	switch turn := p.turns[n].(type) {
	case error:
		return schemas.Reply{}, turn
	case func(context.Context, *agents.Transcript) (schemas.Reply, error):
		return turn(ctx, t)
	default:
		return turn.(schemas.Reply), nil
	}
}

func tools(names ...string) []schemas.ToolSchema {
	var out []schemas.ToolSchema
	for _, n := range names {
		out = append(out, schemas.ToolSchema{Name: n})
	}
	return out
}

func calls(names ...string) schemas.Reply {
	var r schemas.Reply
	for _, n := range names {
		r.Calls = append(r.Calls, schemas.ToolCall{Name: n})
	}
	return r
}

// memoryRecorder is an in-memory Recorder. Its writes fail after the first failAt, as if the process had been
// killed.
type memoryRecorder struct {
	steps   []schemas.Step
	replies map[int]schemas.Reply
	log     []string
	failAt  int // 0: never
}

var errKilled = errors.New("killed")

func (r *memoryRecorder) write(what string) error {
	if r.failAt > 0 && len(r.log) >= r.failAt {
		return errKilled
	}
	r.log = append(r.log, what)
	return nil
}

func (r *memoryRecorder) Replayed() ([]schemas.Step, *schemas.Reply) {
	last := -1
	for _, s := range r.steps {
		last = max(last, s.Turn)
	}
	if p, ok := r.replies[last+1]; ok {
		return slices.Clone(r.steps), &p
	}
	return slices.Clone(r.steps), nil
}
func (r *memoryRecorder) TurnContext(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
func (r *memoryRecorder) Reply(_ context.Context, turn int, reply schemas.Reply) error {
	if err := r.write(fmt.Sprint("reply ", turn)); err != nil {
		return err
	}
	if r.replies == nil {
		r.replies = map[int]schemas.Reply{}
	}
	r.replies[turn] = reply
	return nil
}
func (r *memoryRecorder) Step(_ context.Context, s schemas.Step) error {
	if err := r.write(fmt.Sprint("step ", s.Turn, ".", s.Call)); err != nil {
		return err
	}
	raw, err := json.Marshal(s) // a log keeps only what JSON represents
	if err != nil {
		return err
	}
	var back schemas.Step
	if err := json.Unmarshal(raw, &back); err != nil {
		return err
	}
	r.steps = append(r.steps, back)
	return nil
}
