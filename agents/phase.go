package agents

// Conversations: which one the next turn belongs to, how it is opened, and the
// calls that are not the environment's to answer.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Phased is a Policy that says which tools its model is shown now, and which
// calls it answers itself. Both methods must be functions of their arguments, as
// Next is, so that a recorded episode comes to the same phase again. A Policy that
// is not Phased is always in the zero Phase and answers no call.
type Phased interface {
	Policy
	// Phase is asked before each turn, and before each call of a turn; offered
	// are the environment's tools. t.Phase is the one that was on.
	Phase(t *Transcript, offered []schemas.ToolSchema) (Phase, error)
	// Answer answers a call of a tool that is the policy's own, or one that it does
	// not want executed; ok is false for all others. Run asks it about a reply without
	// a call as the zero call, and not at all in the zero Phase. The answer must not
	// depend on the sandbox: Run does not execute such calls again when it takes up an
	// episode.
	Answer(t *Transcript, call schemas.ToolCall) (o schemas.Observation, ok bool)
}

// PhasedOf returns p as a Phased policy.
func PhasedOf(p Policy) Phased {
	if own, ok := p.(Phased); ok {
		return own
	}
	return singlePhase{p}
}

type singlePhase struct{ Policy }

func (singlePhase) Phase(*Transcript, []schemas.ToolSchema) (Phase, error) { return Phase{}, nil }

func (singlePhase) Answer(*Transcript, schemas.ToolCall) (schemas.Observation, bool) {
	return schemas.Observation{}, false
}

// Phase is where an episode stands. The zero Phase, Recorded and Exit aside, is the
// only conversation of an episode, in which the model is shown all of the
// environment's tools and the environment answers every call.
type Phase struct {
	// Name goes to Step.Phase. Another name than before opens a conversation, whose
	// model sees the steps of that name alone.
	Name string
	// Tools are what the model is shown at the next turn, within a conversation
	// too; those that a step adds are named at the end of its answer. Calls of
	// others are answered, not executed.
	Tools []schemas.ToolSchema
	// Numbered ends each answer with the number of its step, so that the model
	// can name it.
	Numbered bool
	// Exit ends the episode before the next turn, schemas.Exit*; "" = go on.
	Exit string
	// Recorded are the answers, as Settled, to the calls of the turn that the policy
	// is about to repeat from a recording; "" = not known. Run compares them with the
	// new answers.
	Recorded []string
}

// Whole reports whether the model is shown all of the environment's tools and the
// environment answers every call.
func (ph Phase) IsDefault() bool { return ph.Name == "" && ph.Tools == nil }

func (ph Phase) shownTools(offered []schemas.ToolSchema) []schemas.ToolSchema {
	if ph.IsDefault() {
		return offered
	}
	return ph.Tools
}

// Conversation is the part of Steps that the model of the current phase knows.
func (t *Transcript) Conversation() []schemas.Step {
	if t.Phase == "" {
		return t.Steps
	}
	var out []schemas.Step
	for _, s := range t.Steps {
		if s.Phase == t.Phase {
			out = append(out, s)
		}
	}
	return out
}

func (r *run) phase() (Phase, error) {
	ph, err := r.policy.Phase(&r.transcript, r.envTools)
	if err != nil {
		return ph, fmt.Errorf("finding the phase: %w", err)
	}
	return ph, nil
}

// enter makes the phase of the next turn the current one. A new conversation is
// opened with what is recorded of its opening, and the rest is written now: its
// prompts, then what tools said at the reset, if there was one.
func (r *run) enterPhase(reset *env.Info, began time.Time) (exit string, err error) {
	ph, err := r.phase()
	if err != nil || ph.Exit != "" {
		return ph.Exit, err
	}
	opened := ph.Name != r.current.Name || reset != nil
	r.current = ph
	r.transcript.Phase = ph.Name
	r.showTools(ph.shownTools(r.envTools))
	if !opened {
		return "", nil
	}
	r.formatErrors, r.recentCalls, r.conversationTokens = 0, nil, 0
	steps, err := r.openingSteps(reset, began)
	if err != nil {
		return "", err
	}
	n := 0
	for len(r.recorded) > 0 && r.recorded[0].Turn < 0 && r.recorded[0].Phase == ph.Name {
		r.replay(r.recorded[0])
		r.recorded = r.recorded[1:]
		n++
	}
	if len(r.recorded) > 0 { // turns follow, so the opening was whole
		return "", nil
	}
	for _, s := range steps[min(n, len(steps)):] {
		if err := r.add(s); err != nil {
			return "", err
		}
	}
	return "", nil
}

// opening are the system prompt, the problem, and what tools said at the reset.
// They begin when the reset began.
func (r *run) openingSteps(reset *env.Info, began time.Time) ([]schemas.Step, error) {
	system, problem, err := r.policy.Prompts(&r.transcript)
	if err != nil {
		return nil, fmt.Errorf("rendering the prompts: %w", err)
	}
	var steps []schemas.Step
	add := func(s schemas.Step) {
		s.Turn, s.Call, s.At, s.Phase = -1, -1, began, r.current.Name
		steps = append(steps, s)
	}
	if system != "" {
		add(schemas.Step{Source: "system", Text: system})
	}
	if problem != "" {
		add(schemas.Step{Source: "user", Text: problem})
	}
	if reset == nil {
		return steps, nil
	}
	if len(reset.Observations) > 1 {
		for _, o := range reset.Observations[1:] {
			if o.Text == "" {
				continue
			}
			text := o.Text
			if r.current.Numbered {
				text += "\n\n" + stepNumber(len(r.result.Steps)+len(steps))
			}
			add(schemas.Step{Source: "env", Text: text, Observation: &o})
		}
	}
	if len(steps) > 0 {
		last, state := &steps[len(steps)-1], reset.State
		last.State, last.EnvMillis = &state, reset.Wall.Milliseconds()
	}
	return steps, nil
}

// announce ends the answer of a step with the tools that it brings into the
// conversation, so that the record says when a model was told.
func (r *run) announceTools(step *schemas.Step) error {
	if r.current.IsDefault() || step.Turn < 0 || step.Observation == nil {
		return nil
	}
	before, err := r.phase()
	if err != nil {
		return err
	}
	steps := r.transcript.Steps
	r.transcript.Steps = append(steps, withoutFullText(*step))
	after, err := r.phase()
	r.transcript.Steps = steps
	if err != nil || after.Name != before.Name {
		return err
	}
	var names []string
	for _, t := range after.Tools {
		if !slices.ContainsFunc(before.Tools, func(had schemas.ToolSchema) bool { return had.Name == t.Name }) {
			names = append(names, t.Name)
		}
	}
	if len(names) > 0 {
		text := fmt.Sprintf("[From now on you can also call: %s.]", strings.Join(names, ", "))
		step.Triggered = append(slices.Clip(step.Triggered), schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text))})
	}
	return nil
}

// Preview renders what opens an episode, before there is one.
func Preview(p Policy, t schemas.Task, offered []schemas.ToolSchema) (system, problem string, err error) {
	tr := Transcript{Task: t}
	ph, err := PhasedOf(p).Phase(&tr, offered)
	if err != nil {
		return "", "", err
	}
	tr.Phase, tr.Tools = ph.Name, ph.shownTools(offered)
	return p.Prompts(&tr)
}

// number is how a step is named to the model. It stands behind the answer, so
// that equal answers stay equal.
func stepNumber(index int) string { return fmt.Sprintf("[This was step %d.]", index) }

// show makes tools what the model sees, and keeps each list that was shown.
func (r *run) showTools(tools []schemas.ToolSchema) {
	same := func(a, b schemas.ToolSchema) bool { return a.Name == b.Name } // all are of one set
	if r.toolSet != "" && slices.EqualFunc(r.transcript.Tools, tools, same) {
		return
	}
	r.transcript.Tools, r.toolSet = tools, schemas.Hash(tools)
	if r.current.IsDefault() {
		r.result.Tools = tools
		return
	}
	for _, t := range tools {
		if !slices.ContainsFunc(r.result.Tools, func(have schemas.ToolSchema) bool { return same(have, t) }) {
			r.result.Tools = append(r.result.Tools, t)
		}
	}
	if !slices.ContainsFunc(r.result.ToolSets, func(have []schemas.ToolSchema) bool { return slices.EqualFunc(have, tools, same) }) {
		r.result.ToolSets = append(r.result.ToolSets, tools)
	}
}

// answer answers a call that does not reach the environment: one of the policy's
// own tools, or of a tool that is not shown in this phase.
func (r *run) answerLocally(call schemas.ToolCall) (schemas.Observation, bool) {
	if r.current.IsDefault() {
		return schemas.Observation{}, false
	}
	var names []string
	for _, t := range r.current.Tools {
		names = append(names, t.Name)
	}
	if slices.Contains(names, call.Name) {
		return r.policy.Answer(&r.transcript, call)
	}
	text := fmt.Sprintf("There is no tool named %q here. Call one of: %s.", call.Name, strings.Join(names, ", "))
	return schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text)), IsError: true, ErrorClass: schemas.ErrUnknownTool}, true
}

// executed tells whether a recorded call reached the environment.
func (r *run) reachedEnv(s schemas.Step) bool {
	if s.ToolCall == nil || s.Observation == nil {
		return false
	}
	switch s.Observation.ErrorClass {
	case schemas.ErrSandboxDied, schemas.ErrNotExecuted:
		return false
	}
	if r.current.IsDefault() {
		return true
	}
	known := slices.ContainsFunc(r.envTools, func(t schemas.ToolSchema) bool { return t.Name == s.ToolCall.Name })
	return known && s.ToolCall.Invalid == "" && s.Observation.ErrorClass != schemas.ErrUnknownTool
}

// unaltered is the state after a call that did not reach the environment.
func (r *run) stateBefore() *schemas.EnvState {
	for _, s := range slices.Backward(r.result.Steps) {
		if s.State != nil {
			state := *s.State
			state.FilesChanged = nil
			return &state
		}
	}
	return nil
}
