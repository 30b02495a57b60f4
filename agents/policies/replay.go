package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "replay",
		Summary: "says again what an episode of the same task recorded, then ends or goes on with a model",
		Default: func() any { return &ReplayConfig{SeekerConfig: seekerDefaults(), Then: thenStop} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newReplay(*cfg.(*ReplayConfig), deps)
		},
	})
}

// ReplayConfig names the recording. The settings of react hold for what follows
// it, those of the seeker where it was one.
type ReplayConfig struct {
	SeekerConfig
	From    string `json:"from"`    // run directory or dataset
	Episode string `json:"episode"` // id of the episode, or its beginning; unset = each task's own, by attempt
	Turns   int    `json:"turns"`   // turns that are repeated; 0 = all
	Then    string `json:"then"`    // what follows: stop or model
}

// Values of ReplayConfig.Then.
const (
	thenStop  = "stop"
	thenModel = "model"
)

// Needs implements agents.Needy.
func (c *ReplayConfig) Needs() agents.Needs {
	n := c.SeekerConfig.Needs()
	n.Model, n.Recording, n.Episode = c.Then == thenModel, c.From, c.Episode
	return n
}

// replay makes recorded replies, and is the agent of its kind after them. Their
// observations are new: the environment executes the calls.
type replay struct {
	turns     []agents.RecordedTurn
	style     string
	info      schemas.AgentInfo
	agent     agents.Phased // of the recording's kind; nil: its opening is the task alone
	continues bool          // as goes on where the recording ends
}

var _ agents.Phased = (*replay)(nil)

func newReplay(cfg ReplayConfig, deps agents.Deps) (agents.Policy, error) {
	switch {
	case cfg.From == "":
		return nil, errors.New("from names no recording: give a run directory or a dataset")
	case cfg.Then != thenStop && cfg.Then != thenModel:
		return nil, fmt.Errorf("then is %q: choose %s or %s", cfg.Then, thenStop, thenModel)
	case cfg.Turns < 0:
		return nil, errors.New("turns must not be negative")
	case deps.Recording == nil:
		return nil, fmt.Errorf("%s holds no episode of task %s", cfg.From, deps.Task.InstanceID)
	}
	rec := *deps.Recording
	p := &replay{turns: rec.Turns, style: rec.Style, continues: cfg.Then == thenModel}
	if cfg.Turns > 0 && cfg.Turns < len(p.turns) {
		p.turns = p.turns[:cfg.Turns]
	}
	as, err := p.buildAgent(cfg, deps, rec)
	if err != nil {
		return nil, err
	}
	if as != nil {
		p.agent = agents.PhasedOf(as)
	}
	config, err := json.Marshal(cfg.ReactConfig)
	p.info = schemas.AgentInfo{Version: "1", Policy: "replay", ToolCallStyle: "native"}
	if p.agent != nil {
		as := p.agent.Info()
		config, p.info.ToolCallStyle = []byte(as.ConfigJSON), as.ToolCallStyle
		for _, ph := range as.Phases {
			p.info.Phases = append(p.info.Phases, schemas.PhaseInfo{Name: ph.Name})
		}
		if p.continues {
			p.info = as
		}
	}
	if err == nil {
		config, err = p.config(config, cfg, rec)
	}
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	p.info.Name, p.info.GoldUsed, p.info.ConfigJSON, p.info.Parent = "replay", rec.GoldUsed, string(config), rec.Episode
	return p, nil
}

// config adds the recording to an agent's settings. What is said again is the
// identity, not where it was read from.
func (p *replay) config(settings []byte, cfg ReplayConfig, rec agents.Recording) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, err
	}
	all["episode"], all["replies"], all["then"] = rec.Episode, schemas.Hash(p.turns), cfg.Then
	return schemas.CanonicalJSON(all)
}

// buildAgent is one of the kind that was recorded.
func (p *replay) buildAgent(cfg ReplayConfig, deps agents.Deps, rec agents.Recording) (agents.Policy, error) {
	if !p.continues {
		cfg.SolverModel, deps.Client = "", noModel{}
	}
	switch {
	case slices.ContainsFunc(rec.Turns, func(t agents.RecordedTurn) bool { return t.Phase != "" }):
		for _, t := range p.turns {
			var err error
			if deps.Tools != nil {
				_, err = pickTools(append(slices.Clip(deps.Tools), handover.Schema()), t.Tools)
			}
			if err != nil {
				return nil, fmt.Errorf("episode %s cannot be said again: %w", rec.Episode, err)
			}
		}
		if !p.continues {
			cfg.SeekTools, cfg.SolveTools = nil, nil // those of each turn
		}
		return newSeeker(cfg.SeekerConfig, deps)
	case rec.Style == history.TextStyle:
		return newSimple(cfg.ReactConfig, deps)
	case p.continues:
		return newReact(cfg.ReactConfig, deps)
	}
	return nil, nil
}

func (p *replay) Info() schemas.AgentInfo { return p.info }

func (p *replay) Prompts(t *agents.Transcript) (system, problem string, err error) {
	if p.agent == nil {
		return "", t.Task.Instructions, nil
	}
	return p.agent.Prompts(t)
}

// recordedTurn is the recorded turn after those of t in a conversation; nil after the last,
// and from the first on that was not of the conversation which was on.
func (p *replay) recordedTurn(t *agents.Transcript, phase string) *agents.RecordedTurn {
	n := 0
	for _, s := range t.Steps {
		if s.Reply == nil {
			continue
		}
		if n >= len(p.turns) || p.turns[n].Phase != s.Phase {
			return nil
		}
		n++
	}
	if n >= len(p.turns) || p.turns[n].Phase != phase {
		return nil
	}
	return &p.turns[n]
}

func (p *replay) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	turn := p.recordedTurn(t, t.Phase)
	switch {
	case turn == nil && p.continues:
		return p.agent.Next(ctx, t)
	case turn == nil && countTurns(t) < len(p.turns):
		left := p.turns[countTurns(t)].Phase
		return schemas.Reply{Stop: schemas.ExitGaveUp,
			Message: fmt.Sprintf("The recording cannot be followed: its next reply belongs to %s, and this episode is in %s.", left, t.Phase)}, nil
	case turn == nil:
		return schemas.Reply{Stop: schemas.ExitGaveUp, Message: "The recording has ended."}, nil
	}
	r := turn.Reply
	r.Copied = true
	r.Calls = slices.Clone(r.Calls)
	if p.style == history.TextStyle { // as they were read then, mistakes included
		_, r.Calls = calltext.Parse(r.Message, t.Tools, r.Truncated)
		for i := range r.Calls {
			if r.Calls[i].Invalid == "" {
				r.Calls[i].Raw = ""
			}
		}
	}
	return r, nil
}

// Phase implements agents.Phased: a recorded turn is shown the tools that it was
// shown then, and no budget ends it.
func (p *replay) Phase(t *agents.Transcript, offered []schemas.ToolSchema) (ph agents.Phase, err error) {
	if p.agent != nil {
		ph, err = p.agent.Phase(t, offered)
	}
	turn := p.recordedTurn(t, ph.Name)
	if err != nil || turn == nil && p.continues {
		return ph, err
	}
	ph.Exit = ""
	if turn == nil {
		return ph, nil
	}
	ph.Recorded = turn.Answers
	if turn.Tools != nil && !ph.IsDefault() {
		ph.Tools, err = pickTools(append(slices.Clip(offered), handover.Schema()), turn.Tools)
	}
	return ph, err
}

// Answer implements agents.Phased.
func (p *replay) Answer(t *agents.Transcript, call schemas.ToolCall) (schemas.Observation, bool) {
	return p.agent.Answer(t, call)
}

// noModel stands where an agent is needed for all but its questions.
type noModel struct{}

func (noModel) Chat(context.Context, llms.Request) (llms.Response, error) {
	return llms.Response{}, errors.New("a recording asks no model")
}
func (noModel) Provider() string { return "" }
func (noModel) Model() string    { return "" }
