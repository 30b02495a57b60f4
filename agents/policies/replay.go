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
		Summary: "repeats the recorded replies of an episode of the same task, then ends or continues with a model",
		Default: func() any { return &ReplayConfig{SeekerConfig: seekerDefaults(), Then: thenStop} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newReplay(*cfg.(*ReplayConfig), deps)
		},
	})
}

// ReplayConfig names the recording. The settings of react apply to the turns after the recording,
// and those of the seeker if the recorded agent was a seeker.
type ReplayConfig struct {
	SeekerConfig
	From string `json:"from"` // run directory or dataset
	// Id of the episode, or its beginning; unset = the episode of the same task and attempt, or else
	// of the task's first attempt.
	Episode string `json:"episode"`
	Turns   int    `json:"turns"` // maximum number of turns to repeat; 0 = all
	Then    string `json:"then"`  // what to do after the recording: stop or model
}

// Values of ReplayConfig.Then.
const (
	thenStop  = "stop"
	thenModel = "model"
)

// Needs implements agents.ConfigWithNeeds.
func (c *ReplayConfig) Needs() agents.Needs {
	n := c.SeekerConfig.Needs()
	n.Model, n.Recording, n.Episode = c.Then == thenModel, c.From, c.Episode
	return n
}

// replay repeats recorded replies. The environment executes their calls, so the observations are
// new. After the recording, an agent of the recorded kind may continue.
type replay struct {
	turns     []agents.RecordedTurn
	style     string
	info      schemas.AgentInfo
	agent     agents.Phased // an agent of the recorded kind; nil if only the task opens the episode
	continues bool          // agent continues after the recording
}

var _ agents.Phased = (*replay)(nil)

func newReplay(cfg ReplayConfig, deps agents.Deps) (agents.Policy, error) {
	switch {
	case cfg.From == "":
		return nil, errors.New("from is empty: give a run directory or a dataset")
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
	agent, err := p.buildAgent(cfg, deps, rec)
	if err != nil {
		return nil, err
	}
	if agent != nil {
		p.agent = agents.PhasedOf(agent)
	}
	config, err := json.Marshal(cfg.ReactConfig)
	p.info = schemas.AgentInfo{Version: "1", Policy: "replay", ToolCallStyle: "native"}
	if p.agent != nil {
		info := p.agent.Info()
		config, p.info.ToolCallStyle = []byte(info.ConfigJSON), info.ToolCallStyle
		for _, ph := range info.Phases {
			p.info.Phases = append(p.info.Phases, schemas.PhaseInfo{Name: ph.Name})
		}
		if p.continues {
			p.info = info
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

// config adds the recording to an agent's settings. It identifies the recording by its replies, not
// by its location.
func (p *replay) config(settings []byte, cfg ReplayConfig, rec agents.Recording) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, err
	}
	all["episode"], all["replies"], all["then"] = rec.Episode, schemas.Hash(p.turns), cfg.Then
	return schemas.CanonicalJSON(all)
}

// buildAgent returns an agent of the recorded kind, or nil if none is needed.
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
				return nil, fmt.Errorf("episode %s cannot be repeated: %w", rec.Episode, err)
			}
		}
		if !p.continues {
			cfg.SeekTools, cfg.SolveTools = nil, nil // each turn has its own
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

// recordedTurn returns the recorded turn that follows the turns of t in a conversation. It returns
// nil after the last turn, and if the turns so far do not belong to the recorded conversations.
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
		next := p.turns[countTurns(t)].Phase
		return schemas.Reply{Stop: schemas.ExitGaveUp,
			Message: fmt.Sprintf("The recording cannot be followed: its next reply belongs to %s, and this episode is in %s.", next, t.Phase)}, nil
	case turn == nil:
		return schemas.Reply{Stop: schemas.ExitGaveUp, Message: "The recording has ended."}, nil
	}
	r := turn.Reply
	r.Copied = true
	r.Calls = slices.Clone(r.Calls)
	if p.style == history.TextStyle { // parse as in the recorded episode, including its mistakes
		_, r.Calls = calltext.Parse(r.Message, t.Tools, r.Truncated)
		for i := range r.Calls {
			if r.Calls[i].Invalid == "" {
				r.Calls[i].Raw = ""
			}
		}
	}
	return r, nil
}

// Phase implements agents.Phased. A recorded turn sees the tools that it saw when it was recorded,
// and budgets do not end it.
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

// noModel is the client of an agent whose model is never asked.
type noModel struct{}

func (noModel) Chat(context.Context, llms.Request) (llms.Response, error) {
	return llms.Response{}, errors.New("a replay without a model tried to ask a model")
}
func (noModel) Provider() string { return "" }
func (noModel) Model() string    { return "" }
