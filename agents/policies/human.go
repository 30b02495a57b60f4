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
		Summary: "you, at the terminal: tool key=value, one call per line",
		Default: func() any { return &HumanConfig{} },
		New: func(_ any, deps agents.Deps) (agents.Policy, error) {
			if deps.Console == nil {
				return nil, errors.New("agent human needs a terminal: run tracesmith in one")
			}
			return &human{console: deps.Console, prompts: deps.Templates()}, nil
		},
	})
}

// HumanConfig has no settings.
type HumanConfig struct{}

// Needs implements agents.ConfigWithNeeds.
func (*HumanConfig) Needs() agents.Needs { return agents.Needs{Console: true} }

// human shows a person what a model would see, and takes one call per line. Lines that begin with #
// become the message of the next call.
type human struct {
	console agents.Console
	prompts *prompts.Set
	shown   int // number of steps shown
}

// maxBadLines is the number of invalid lines after which the turn ends without a call.
const maxBadLines = 10

const humanHelp = `Enter a tool and its arguments: tool key=value key="a value". In quotes, \n is a line break.
  # text     records your thoughts with the next call
  ?          lists the tools; ? NAME describes one of them
Tab completes a word, the arrow keys recall lines, and Ctrl-D ends the episode.
`

func (h *human) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "human", Version: "1", Policy: "human", ConfigJSON: "{}", ToolCallStyle: "native"}
}

func (h *human) Prompts(t *agents.Transcript) (system, problem string, err error) {
	_, problem, err = h.prompts.Opening("react", prompts.Model{}, t.Task, t.Tools)
	return "", problem, err
}

// Next shows the new steps and reads lines until one is a call.
func (h *human) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	h.show(t)
	var thoughts []string
	lastBad := ""
	for bad := 0; bad < maxBadLines; {
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
			bad, lastBad = bad+1, text
			if m, ok := errors.AsType[*calltext.Mistake](err); ok {
				fmt.Fprintf(h.console, "  %s^ %s\n", strings.Repeat(" ", len([]rune(line[:m.At]))), m.Message)
			}
		}
	}
	fmt.Fprintf(h.console, "The turn is over after %d lines that are not valid calls.\n", maxBadLines)
	return schemas.Reply{Message: strings.Join(append(thoughts, lastBad), "\n")}, nil
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
