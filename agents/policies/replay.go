package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "replay",
		Summary: "says again what an episode of the same task recorded, then ends or goes on with a model",
		Default: func() any { return &ReplayConfig{Then: thenStop} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newReplay(*cfg.(*ReplayConfig), deps)
		},
	})
}

// ReplayConfig names the recording. The settings of react hold for what follows it.
type ReplayConfig struct {
	ReactConfig
	From    string `json:"from"`    // a run directory or a dataset
	Episode string `json:"episode"` // an id or the beginning of one; "" = each task's own, by attempt
	Turns   int    `json:"turns"`   // so many of the recording at most; 0 = all
	Then    string `json:"then"`    // stop, or model
}

// Values of ReplayConfig.Then.
const (
	thenStop  = "stop"
	thenModel = "model"
)

// Needs implements the declaration agents.NeedsOf reads.
func (c *ReplayConfig) Needs() agents.Needs {
	return agents.Needs{Model: c.Then == thenModel, Recording: c.From, Episode: c.Episode}
}

// replay makes recorded replies, and is react after them. Their observations are
// new: the environment executes the calls.
type replay struct {
	replies []schemas.Reply
	info    schemas.AgentInfo
	then    *react // nil: the episode ends
}

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
	case cfg.Then == thenModel && deps.Recording.Style == history.TextStyle:
		return nil, fmt.Errorf("episode %s cannot be gone on with, because its calls stand in its texts: choose then: stop", deps.Recording.Episode)
	}
	rec := *deps.Recording
	p := &replay{replies: rec.Replies}
	if cfg.Turns > 0 && cfg.Turns < len(p.replies) {
		p.replies = p.replies[:cfg.Turns]
	}
	p.info = schemas.AgentInfo{Version: "1", Policy: "replay", ToolCallStyle: "native"}
	if cfg.Then == thenModel {
		var err error
		if p.then, err = newReact(cfg.ReactConfig, deps); err != nil {
			return nil, err
		}
		p.info = p.then.info
		cfg.Sampling = p.then.cfg.Sampling
	}
	// What is said again is the identity, not where it was read from.
	config, err := json.Marshal(struct {
		ReactConfig
		Episode string `json:"episode"`
		Replies string `json:"replies"`
		Then    string `json:"then"`
	}{cfg.ReactConfig, rec.Episode, schemas.Hash(p.replies), cfg.Then})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	p.info.Name, p.info.GoldUsed, p.info.ConfigJSON = "replay", rec.GoldUsed, string(config)
	return p, nil
}

func (p *replay) Info() schemas.AgentInfo { return p.info }

func (p *replay) Prompts(t schemas.Task, tools []schemas.ToolSchema) (system, problem string, err error) {
	if p.then == nil {
		return "", t.Instructions, nil
	}
	return p.then.Prompts(t, tools)
}

func (p *replay) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	n := turns(t)
	switch {
	case n < len(p.replies):
		r := p.replies[n]
		r.Calls = append([]schemas.ToolCall(nil), r.Calls...)
		return r, nil
	case p.then == nil:
		return schemas.Reply{Stop: schemas.ExitGaveUp, Message: "The recording has ended."}, nil
	}
	return p.then.Next(ctx, t)
}
