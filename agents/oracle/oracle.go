// Package oracle demonstrates debugging without a model. It has two halves: package write derives,
// from what the steps have shown, the actions that a developer could take, and writes them; package
// choose knows the fix and picks one.
package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/goldpatch"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/oracle/choose"
	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// version must go up with every change to the oracle's actions or messages, because they are training data.
const version = "3"

// Config configures an oracle.
type Config struct {
	// Go on with the edits of the gold patch if the oracle has named the cause but can derive no edit. Models are not trained on
	// these edits or on what follows them.
	GoldEdit bool `mapstructure:"gold_edit" json:"gold_edit"`
	// Do the seeker's part: change nothing, and end with a call of handover.
	Handover bool `mapstructure:"handover" json:"handover"`
}

// Needs implements agents.ConfigWithNeeds.
func (c *Config) Needs() agents.Needs {
	n := agents.Needs{Gold: true, Trace: true}
	if c.Handover {
		n.Tools = []schemas.ToolSchema{handover.Schema()}
	}
	return n
}

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "oracle",
		Summary: "no model: demonstrates how to find a bug; the fix decides between actions but is never shown",
		Default: func() any { return &Config{} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			if deps.Gold == nil || deps.Gold.GoldPatch == "" {
				return nil, fmt.Errorf("task %s has no gold patch, which the oracle needs: add gold.patch, or use an agent that asks a model (react)", deps.Task.InstanceID)
			}
			if deps.Gold.Trace == nil {
				return nil, errors.New("the oracle works only in runs, because it traces tests")
			}
			if cfg.(*Config).GoldEdit && cfg.(*Config).Handover {
				return nil, errors.New("gold_edit and handover exclude each other: an agent that hands over does not edit")
			}
			o := &oracle{cfg: *cfg.(*Config), gold: *deps.Gold, seed: deps.Seed}
			if o.cfg.GoldEdit {
				var err error
				if o.edits, err = goldpatch.Edits(deps.Gold.GoldPatch); err != nil {
					return nil, fmt.Errorf("reading the gold patch of %s: %w", deps.Task.InstanceID, err)
				}
			}
			return o, nil
		},
	})
}

type oracle struct {
	cfg     Config
	gold    agents.Privileged
	edits   []schemas.ToolCall // the gold patch, if GoldEdit is set
	seed    int64
	chooser *choose.Chooser
}

// Info implements agents.Policy.
func (o *oracle) Info() schemas.AgentInfo {
	raw, _ := json.Marshal(o.cfg) // cannot fail: a boolean
	return schemas.AgentInfo{
		Name: "oracle", Version: version + "/" + prompts.Default().Version(), Policy: "oracle", GoldUsed: true,
		ConfigJSON: string(raw), ToolCallStyle: "native",
	}
}

// Prompts implements agents.Policy. It returns the prompts that the agent react or, with Handover, the agent seeker sends to a
// model, so that a model can be trained on the transcript.
func (o *oracle) Prompts(t *agents.Transcript) (system, problem string, err error) {
	if o.cfg.Handover {
		return prompts.Default().Seek(prompts.Model{}, t.Task, t.Tools, 0)
	}
	return prompts.Default().Opening("react", prompts.Model{}, t.Task, t.Tools)
}

// seekPhase is the name of the seeker's first conversation.
const seekPhase = "seek"

// Phase implements agents.Phased. With Handover, the oracle has the tools that change nothing, and handover.
func (o *oracle) Phase(t *agents.Transcript, offered []schemas.ToolSchema) (agents.Phase, error) {
	if !o.cfg.Handover {
		return agents.Phase{}, nil
	}
	ph := agents.Phase{Name: seekPhase, NumberSteps: true}
	if slices.ContainsFunc(t.Steps, handover.Accepted) {
		ph.Exit = schemas.ExitHandedOver
	}
	for _, tool := range offered {
		if tool.Name != "edit" && tool.Name != "submit" {
			ph.Tools = append(ph.Tools, tool)
		}
	}
	ph.Tools = append(ph.Tools, handover.Schema())
	return ph, nil
}

// Answer implements agents.Phased.
func (o *oracle) Answer(t *agents.Transcript, call schemas.ToolCall) (schemas.Observation, bool) {
	if call.Name != handover.Name {
		return schemas.Observation{}, false
	}
	return handover.Answer(t.Task.Workdir, t.Steps, call, schemas.ContextOp{}), true
}

// Next implements agents.Policy.
func (o *oracle) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	if o.chooser == nil {
		test := followed(t.Task.Entrypoint, o.gold.Failing)
		trace, err := o.gold.Trace(ctx, test)
		if err != nil {
			return schemas.Reply{}, fmt.Errorf("tracing %s: %w", test, err)
		}
		if o.chooser, err = choose.New(trace, o.gold.GoldPatch); err != nil {
			return schemas.Reply{}, err
		}
		o.chooser.Explains = o.cfg.GoldEdit
	}
	notes := write.Read(t)
	notes.Seed = o.seed
	if notes.Explained && notes.GoldEdits < len(o.edits) {
		return notes.GoldEdit(o.edits[notes.GoldEdits]), nil
	}
	options := notes.Options()
	return options[o.chooser.Choose(notes, options)].Reply(notes.Calls), nil
}

// followed returns the test that the oracle debugs: the first failing one that the debugger can run alone and that is no
// doctest, or else the first one.
func followed(entrypoint string, failing []string) string {
	i := slices.IndexFunc(failing, func(id string) bool {
		return strings.HasPrefix(testcmd.Function(id), "test") && testcmd.One(entrypoint, id, true) != ""
	})
	return failing[max(i, 0)]
}
