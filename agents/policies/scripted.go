package policies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "scripted",
		Summary: "makes the calls of a YAML list, one per turn",
		Default: func() any { return &ScriptedConfig{} },
		New: func(cfg any, _ agents.Deps) (agents.Policy, error) {
			return newScripted(*cfg.(*ScriptedConfig))
		},
	})
}

// ScriptedConfig is a list of calls, inline or in a YAML file.
type ScriptedConfig struct {
	File  string         `json:"file"` // YAML file with the calls
	Calls []ScriptedCall `json:"calls"`
}

// ScriptedCall is one turn.
type ScriptedCall struct {
	Tool      string         `json:"tool" yaml:"tool"`           // name of the tool
	Arguments map[string]any `json:"arguments" yaml:"arguments"` // arguments of the call
	Message   string         `json:"message" yaml:"message"`     // text of the reply that makes the call
}

// maxScript is the largest size of a script in bytes.
const maxScript = 16 << 20

type scripted struct {
	replies []schemas.Reply
	config  string
}

func newScripted(cfg ScriptedConfig) (*scripted, error) {
	switch {
	case (cfg.File == "") == (len(cfg.Calls) == 0):
		return nil, errors.New("give either file or calls")
	case cfg.File != "":
		calls, err := readScript(cfg.File)
		if err != nil {
			return nil, err
		}
		cfg.Calls = calls
	}
	s := &scripted{}
	for i, c := range cfg.Calls {
		if c.Tool == "" {
			return nil, fmt.Errorf("call %d has no tool", i+1)
		}
		if c.Arguments == nil {
			c.Arguments = map[string]any{}
		}
		args, err := schemas.CanonicalJSON(c.Arguments)
		if err != nil {
			return nil, fmt.Errorf("call %d (%s): JSON cannot represent the arguments: %w", i+1, c.Tool, err)
		}
		s.replies = append(s.replies, schemas.Reply{Message: c.Message, Calls: []schemas.ToolCall{{Name: c.Tool, Arguments: args}}})
	}
	// Info identifies the agent by its calls, not by the location of the script.
	config, err := schemas.CanonicalJSON(map[string]any{"calls": cfg.Calls})
	if err != nil {
		return nil, err
	}
	s.config = string(config)
	return s, nil
}

func readScript(file string) ([]ScriptedCall, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the script: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	if len(text) > maxScript {
		return nil, fmt.Errorf("script %s is longer than %d MiB", file, maxScript>>20)
	}
	var calls []ScriptedCall
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&calls); err != nil {
		return nil, fmt.Errorf("script %s must be a list of {tool, arguments, message}: %w", file, err)
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("script %s holds no calls", file)
	}
	return calls, nil
}

func (s *scripted) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "scripted", Version: "1", Policy: "scripted", ConfigJSON: s.config, ToolCallStyle: "native"}
}

func (s *scripted) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return "", t.Task.Instructions, nil
}

func (s *scripted) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	n := countTurns(t)
	if n >= len(s.replies) {
		return schemas.Reply{Stop: schemas.ExitGaveUp, Message: "The script has ended."}, nil
	}
	r := s.replies[n]
	r.Calls = append([]schemas.ToolCall(nil), r.Calls...)
	return r, nil
}

func countTurns(t *agents.Transcript) int {
	n := 0
	for _, s := range t.Steps {
		if s.Reply != nil {
			n++
		}
	}
	return n
}
