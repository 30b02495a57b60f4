package agents

// This file opens conversations, switches between them, and answers the calls that do not go
// to the environment.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Phased is a Policy that decides which tools its model sees in each turn, and that may
// answer calls itself. Like Next, both methods must be functions of their arguments, so that
// a replayed episode reaches the same phase. A Policy that is not Phased is always in the
// zero Phase and answers no calls.
type Phased interface {
	Policy
	// Phase returns the current phase. Run calls it before each turn and before each call
	// of a turn. t.Phase is the name of the previous phase, and offered lists the
	// environment's tools.
	Phase(t *Transcript, offered []schemas.ToolSchema) (Phase, error)
	// Answer answers calls of the policy's own tools and calls that must not be executed.
	// For all other calls, ok is false. For a reply without a call, Run passes a zero
	// ToolCall. In the zero Phase, Run does not call Answer. The answer must not depend on the
	// sandbox, because Run does not execute such calls again when it resumes an episode.
	Answer(t *Transcript, call schemas.ToolCall) (o schemas.Observation, ok bool)
}

// PhasedOf returns p as a Phased policy.
func PhasedOf(p Policy) Phased {
	if phased, ok := p.(Phased); ok {
		return phased
	}
	return singlePhase{p}
}

type singlePhase struct{ Policy }

func (singlePhase) Phase(*Transcript, []schemas.ToolSchema) (Phase, error) { return Phase{}, nil }

func (singlePhase) Answer(*Transcript, schemas.ToolCall) (schemas.Observation, bool) {
	return schemas.Observation{}, false
}

// Phase describes the conversation that the next turn belongs to. In the zero Phase, the
// episode has a single conversation, the model sees all of the environment's tools, and the
// environment answers every call.
type Phase struct {
	// Name is stored in Step.Phase. A new name opens a new conversation, whose model sees
	// only the steps with this name.
	Name string
	// Tools lists the tools that the model sees in the next turn. They may change within a
	// conversation. If a step adds tools, its answer ends with their names. Run answers
	// calls of other tools without executing them.
	Tools []schemas.ToolSchema
	// NumberSteps appends the step's number to each answer, so that the model can refer to it.
	NumberSteps bool
	// Exit ends the episode before the next turn with this reason, schemas.Exit*.
	Exit string
	// Recorded is for a policy whose next turn comes from a recording: the AnswerHash of
	// each answer in that turn, "" if unknown. Run compares them with the new answers.
	Recorded []string
}

// IsDefault reports whether the model sees all of the environment's tools and the environment
// answers every call.
func (ph Phase) IsDefault() bool { return ph.Name == "" && ph.Tools == nil }

func (ph Phase) shownTools(offered []schemas.ToolSchema) []schemas.ToolSchema {
	if ph.IsDefault() {
		return offered
	}
	return ph.Tools
}

// Conversation returns the steps that the model of the current phase sees.
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

// enterPhase makes the phase of the next turn the current one. If this opens a conversation,
// enterPhase replays the opening steps that an earlier execution of the job recorded, and adds
// those that are missing. reset is nil except at the start of the episode.
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
	if len(r.recorded) > 0 { // turns follow, so the opening is complete
		return "", nil
	}
	for _, s := range steps[min(n, len(steps)):] {
		if err := r.add(s); err != nil {
			return "", err
		}
	}
	return "", nil
}

// openingSteps returns the steps that open a conversation: the system prompt, the problem, and
// the tools' observations at the reset. Their timestamp is began.
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
		for _, o := range reset.Observations[1:] { // the first one holds the instructions, which Prompts has
			if o.Text == "" {
				continue
			}
			text := o.Text
			if r.current.NumberSteps {
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

// announceTools appends to a step's answer the names of the tools that become available after
// the step, so that the record shows when the model learns of them.
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
		if !slices.ContainsFunc(before.Tools, func(old schemas.ToolSchema) bool { return old.Name == t.Name }) {
			names = append(names, t.Name)
		}
	}
	if len(names) > 0 {
		text := fmt.Sprintf("[From now on you can also call: %s.]", strings.Join(names, ", "))
		step.Triggered = append(slices.Clip(step.Triggered), schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text))})
	}
	return nil
}

// Preview returns the transcript with which an episode's first conversation begins, without running the
// episode. It lacks the observations at the reset.
func Preview(p Policy, t schemas.Task, offered []schemas.ToolSchema) (Transcript, error) {
	tr := Transcript{Task: t}
	ph, err := PhasedOf(p).Phase(&tr, offered)
	if err != nil {
		return tr, err
	}
	tr.Phase, tr.Tools = ph.Name, ph.shownTools(offered)
	system, problem, err := p.Prompts(&tr)
	for _, s := range []schemas.Step{{Source: "system", Text: system}, {Source: "user", Text: problem}} {
		if s.Turn, s.Call, s.Phase = -1, -1, ph.Name; s.Text != "" {
			tr.Steps = append(tr.Steps, s)
		}
	}
	return tr, err
}

// stepNumber returns the text that tells the model a step's number. It is never part of
// Step.Observation, because the detection of repeated answers compares these.
func stepNumber(index int) string { return fmt.Sprintf("[This was step %d.]", index) }

// showTools sets the tools that the model sees, and adds the list to the result.
func (r *run) showTools(tools []schemas.ToolSchema) {
	same := func(a, b schemas.ToolSchema) bool { return a.Name == b.Name } // names are unique within an episode
	if r.toolHash != "" && slices.EqualFunc(r.transcript.Tools, tools, same) {
		return
	}
	r.transcript.Tools, r.toolHash = tools, schemas.Hash(tools)
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

// answerLocally answers calls that the policy answers, and calls of tools that the model does
// not see in this phase. ok is false if the environment must answer.
func (r *run) answerLocally(call schemas.ToolCall) (o schemas.Observation, ok bool) {
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

// reachedEnv reports whether the environment executed a recorded call, in a sandbox that
// survived the call.
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

// stateBefore returns the last known state of the environment, for a call that does not reach
// it.
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
