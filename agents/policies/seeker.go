package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "seeker",
		Summary: "two models: one finds the cause and hands over what it saw, the other writes the fix from that alone",
		Default: func() any { return new(seekerDefaults()) },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newSeeker(*cfg.(*SeekerConfig), deps)
		},
	})
}

// SeekerConfig holds the settings of the seeker policy. History and Seeded apply to both conversations.
// Sampling applies to the seeker, and to a solver without its own model; one with its own model takes
// its sampling from its entry in models.
type SeekerConfig struct {
	ReactConfig
	// Name in section models of the model that writes the fix; unset = the same model.
	SolverModel string `json:"solver_model"`
	SeekSteps   int    `json:"seek_steps"` // turns of the first conversation; 0 = no limit
	// Total tokens of the prompts and answers of the first conversation; 0 = no limit.
	SeekTokens int64 `json:"seek_tokens"`
	// Turns that the first conversation may take beyond these limits, with handover as the only tool.
	HandoverTurns int      `json:"handover_turns"`
	SolveSteps    int      `json:"solve_steps"` // turns of the second conversation; 0 = no limit
	SeekTools     []string `json:"seek_tools"`  // tools of the first conversation
	SolveTools    []string `json:"solve_tools"` // tools of the second conversation
}

func seekerDefaults() SeekerConfig {
	return SeekerConfig{
		SeekSteps: 40, SeekTokens: 1_000_000, HandoverTurns: 2, SolveSteps: 20,
		SeekTools: []string{"view", "grep", "listdir", "pdb"}, SolveTools: []string{"edit", "submit"},
	}
}

// Needs implements agents.ConfigWithNeeds.
func (c *SeekerConfig) Needs() agents.Needs {
	n := agents.Needs{Model: true, Tools: []schemas.ToolSchema{handover.Schema()}}
	if c.SolverModel != "" {
		n.Models = []string{c.SolverModel}
	}
	return n
}

// Names of the two conversations.
const (
	phaseSeek  = "seek"
	phaseSolve = "solve"
)

// seeker has two conversations. The first ends with an accepted handover. The second sees only the
// task and the pack that was handed over.
type seeker struct {
	cfg   SeekerConfig
	seek  *react
	solve *react
}

func newSeeker(cfg SeekerConfig, deps agents.Deps) (*seeker, error) {
	if deps.Client == nil {
		return nil, errors.New("no model is configured: set the model's provider, base_url and name")
	}
	if err := cfg.check(deps.Tools); err != nil {
		return nil, err
	}
	seek, err := newReact(cfg.ReactConfig, deps)
	if err != nil {
		return nil, err
	}
	solver := cfg.ReactConfig
	if cfg.SolverModel != "" {
		m, ok := deps.Models[cfg.SolverModel]
		if !ok {
			return nil, fmt.Errorf("solver_model: there is no %q in section models", cfg.SolverModel)
		}
		deps.Client, solver.Sampling = m.Client, m.Sampling
	}
	solve, err := newReact(solver, deps)
	if err != nil {
		return nil, err
	}
	s := &seeker{cfg: cfg, seek: seek, solve: solve}
	seek.session, solve.session = schemas.ShortHash([]any{seek.session, phaseSeek}), schemas.ShortHash([]any{solve.session, phaseSolve})
	config, err := json.Marshal(struct {
		SeekerConfig
		Solver map[string]any `json:"solver"`
	}{cfg, map[string]any{"model": solve.info.Model, "provider": solve.info.Provider, "sampling": solve.cfg.Sampling}})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	seek.info.Name, seek.info.ConfigJSON = "seeker", string(config)
	seek.info.Phases = []schemas.PhaseInfo{
		{Name: phaseSeek, Model: seek.info.Model, Provider: seek.info.Provider},
		{Name: phaseSolve, Model: solve.info.Model, Provider: solve.info.Provider},
	}
	return s, nil
}

// check validates the settings. offered lists the environment's tools.
func (c SeekerConfig) check(offered []schemas.ToolSchema) error {
	if c.SeekSteps < 0 || c.SeekTokens < 0 || c.SolveSteps < 0 || c.HandoverTurns < 1 {
		return errors.New("seek_steps, seek_tokens and solve_steps must not be negative, handover_turns at least 1")
	}
	for _, name := range c.SeekTools {
		if name == "edit" || name == "submit" || name == handover.Name {
			return fmt.Errorf("seek_tools: %s is not for the seeker: name tools that change nothing", name)
		}
	}
	if slices.Contains(c.SolveTools, handover.Name) {
		return errors.New("solve_tools: a solver cannot hand over: remove handover")
	}
	if offered == nil { // unknown until the environment starts
		return nil
	}
	if _, err := pickTools(offered, c.SeekTools); err != nil {
		return fmt.Errorf("seek_tools: %w", err)
	}
	if _, err := pickTools(offered, c.SolveTools); err != nil {
		return fmt.Errorf("solve_tools: %w", err)
	}
	return nil
}

func pickTools(offered []schemas.ToolSchema, names []string) ([]schemas.ToolSchema, error) {
	var out []schemas.ToolSchema
	for _, name := range names {
		i := slices.IndexFunc(offered, func(t schemas.ToolSchema) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown tool %q: list it in agent.tools", name)
		}
		out = append(out, offered[i])
	}
	return out, nil
}

func (s *seeker) Info() schemas.AgentInfo { return s.seek.info }

func (s *seeker) Prompts(t *agents.Transcript) (system, problem string, err error) {
	if t.Phase == phaseSeek {
		return s.seek.prompts.Seek(s.seek.model(), t.Task, t.Tools, s.cfg.SeekSteps)
	}
	pack, ok := handover.Find(t.Task.Workdir, t.Steps)
	if !ok {
		return "", "", errors.New("the solver's prompts need a handover, and the transcript has none")
	}
	return s.solve.prompts.Solve(s.solve.model(), t.Task, t.Tools, pack)
}

// Phase implements agents.Phased.
func (s *seeker) Phase(t *agents.Transcript, offered []schemas.ToolSchema) (agents.Phase, error) {
	b := s.spending(t)
	ph := agents.Phase{Name: phaseSeek, NumberSteps: true}
	names := s.cfg.SeekTools
	switch {
	case b.handedOver:
		ph = agents.Phase{Name: phaseSolve}
		names = s.cfg.SolveTools
		if s.cfg.SolveSteps > 0 && b.solveReplies >= s.cfg.SolveSteps {
			ph.Exit = schemas.ExitMaxSteps
		}
	case s.isUsedUp(b):
		names = nil
		if b.extraReplies >= s.cfg.HandoverTurns {
			ph.Exit = schemas.ExitNoHandover
		}
	}
	var err error
	if ph.Tools, err = pickTools(offered, names); ph.Name == phaseSeek {
		ph.Tools = append(ph.Tools, handover.Schema())
	}
	return ph, err
}

// spending is the part of its budgets that an episode has spent so far.
type spending struct {
	seekReplies  int   // replies of the seeker
	tokens       int64 // tokens of these replies and their prompts
	extraReplies int   // number of seekReplies after the seeker's budget was used up
	handedOver   bool
	solveReplies int // replies of the solver
}

func (s *seeker) isUsedUp(b spending) bool {
	return s.cfg.SeekSteps > 0 && b.seekReplies >= s.cfg.SeekSteps || s.cfg.SeekTokens > 0 && b.tokens >= s.cfg.SeekTokens
}

func (s *seeker) spending(t *agents.Transcript) spending {
	var b spending
	for i, step := range t.Steps {
		switch {
		case step.Reply == nil:
		case b.handedOver:
			b.solveReplies++
		default:
			if s.isUsedUp(b) {
				b.extraReplies++
			}
			b.seekReplies++
			if s.cfg.SeekTokens > 0 {
				b.tokens += s.callTokens(t.Steps[:i], step.Reply)
			}
		}
		b.handedOver = b.handedOver || handover.Accepted(step)
	}
	return b
}

// callTokens returns the number of tokens of one call of the model. It uses the server's count, or
// that of the local tokenizer if the server did not report any.
func (s *seeker) callTokens(before []schemas.Step, r *schemas.Reply) int64 {
	if r.Usage != nil {
		return r.Usage.Prompt + r.Usage.Completion
	}
	op := schemas.Value(r.Context)
	reply := llms.Message{Content: r.Message, ToolCalls: r.Calls}
	return int64(tokens.For(s.seek.info.Model).Prompt(llms.Request{Messages: append(history.Messages(before, op), reply)}))
}

// Answer implements agents.Phased.
func (s *seeker) Answer(t *agents.Transcript, call schemas.ToolCall) (schemas.Observation, bool) {
	if call.Name != handover.Name {
		return schemas.Observation{}, false
	}
	var prompt schemas.ContextOp
	if t.Reply != nil && t.Reply.Context != nil {
		prompt = *t.Reply.Context
	}
	return handover.Answer(t.Task.Workdir, t.Steps, call, prompt), true
}

// Next asks the model of the current conversation. If handover is the only tool, the model must
// call it.
func (s *seeker) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	if t.Phase == phaseSolve {
		return s.solve.Next(ctx, t)
	}
	seek := *s.seek
	if len(t.Tools) == 1 {
		seek.cfg.Sampling.ToolChoice = handover.Name
	}
	return seek.Next(ctx, t)
}
