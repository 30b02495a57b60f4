package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "human",
		Summary: "you, at the terminal: tool key=value, one call a line",
		Default: func() any { return &HumanConfig{} },
		New: func(_ any, deps agents.Deps) (agents.Policy, error) {
			if deps.Console == nil {
				return nil, errors.New("there is no terminal to play at")
			}
			return &human{console: deps.Console, prompts: deps.Templates()}, nil
		},
	})
}

// HumanConfig has no settings.
type HumanConfig struct{}

// Needs implements agents.Needy.
func (*HumanConfig) Needs() agents.Needs { return agents.Needs{Console: true} }

// human shows a person what a model would see and takes one call a line. Lines
// that begin with # are the message that goes with the next call.
type human struct {
	console agents.Console
	prompts *prompts.Set
	shown   int // steps
}

// patience is how many lines in a row may be wrong before the turn ends without
// a call.
const patience = 10

const humanHelp = `Write a tool and its arguments: tool key=value key="a value". In quotes \n is a line break.
  # text     what you think, recorded with the next call
  ?          the tools; ? NAME  what one of them does
Tab completes, arrows bring lines back, Ctrl-D ends the episode.
`

func (h *human) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "human", Version: "1", Policy: "human", ConfigJSON: "{}", ToolCallStyle: "native"}
}

func (h *human) Prompts(t *agents.Transcript) (system, problem string, err error) {
	_, problem, err = h.prompts.Opening("react", prompts.Model{}, t.Task, t.Tools)
	return "", problem, err
}

// Next shows what is new and reads until there is a call.
func (h *human) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	h.show(t)
	var thoughts []string
	wrong := ""
	for bad := 0; bad < patience; {
		line, err := h.console.ReadLine(ctx, "> ", func(line string) (int, []string) { return calltext.Complete(line, t.Tools) })
		switch text := strings.TrimSpace(line); {
		case errors.Is(err, io.EOF):
			return schemas.Reply{Message: strings.Join(thoughts, "\n"), Stop: schemas.ExitGaveUp}, nil
		case err != nil:
			return schemas.Reply{}, fmt.Errorf("reading from the terminal: %w", err)
		case text == "":
		case text[0] == '#':
			thoughts = append(thoughts, strings.TrimSpace(text[1:]))
		case text[0] == '?':
			h.help(strings.TrimSpace(text[1:]), t.Tools)
		default:
			call, err := calltext.ParseCommand(line, t.Tools)
			if err == nil {
				return schemas.Reply{Message: strings.Join(thoughts, "\n"), Calls: []schemas.ToolCall{call}}, nil
			}
			bad, wrong = bad+1, text
			if m, ok := errors.AsType[*calltext.Mistake](err); ok {
				fmt.Fprintf(h.console, "  %s^ %s\n", strings.Repeat(" ", len([]rune(line[:m.At]))), m.Message)
			}
		}
	}
	fmt.Fprintf(h.console, "%d lines without a call in a row: the turn is over.\n", patience)
	return schemas.Reply{Message: strings.Join(append(thoughts, wrong), "\n")}, nil
}

// show prints the steps since the last turn.
func (h *human) show(t *agents.Transcript) {
	for i := h.shown; i < len(t.Steps); i++ {
		s := t.Steps[i]
		switch {
		case s.Turn < 0:
			fmt.Fprintf(h.console, "%s\n\n", s.Text)
		case s.Observation != nil:
			fmt.Fprintf(h.console, "%s\n\n", history.Observed(s))
		}
	}
	if h.shown == 0 {
		fmt.Fprintf(h.console, "%s", humanHelp)
	}
	h.shown = len(t.Steps)
}

func (h *human) help(name string, tools []schemas.ToolSchema) {
	for _, t := range tools {
		if t.Name == name {
			fmt.Fprintf(h.console, "%s\n%s\n", calltext.Usage([]schemas.ToolSchema{t}), t.Description)
			return
		}
	}
	fmt.Fprintf(h.console, "%s%s\n", humanHelp, calltext.Usage(tools))
}
