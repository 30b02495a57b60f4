package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Numbers such as A21 in the names of tests are rows of docs/internals/parity.md.

// listener returns a tool that calls react for each event.
func listener(name string, react func() (schemas.Observation, error)) tools.Tool {
	return tools.Define(tools.Def[struct{}]{
		Name: name,
		Call: func(context.Context, *env.Session, struct{}) (schemas.Observation, error) {
			return schemas.Observation{Text: name}, nil
		},
		On: func(context.Context, *env.Session, env.Event) (schemas.Observation, error) { return react() },
	})
}

func quiet() (schemas.Observation, error) { return schemas.Observation{}, nil }

// A set does not change after it is built, so the schemas that a model saw hold for its whole
// episode. Another choice of tools is another set.
func TestA21SetIsFixedWhenItIsBuilt(t *testing.T) {
	a, b := listener("a", quiet), listener("b", quiet)
	if _, err := tools.NewSet([]tools.Tool{a, b, listener("a", quiet)}); err == nil || !strings.Contains(err.Error(), `"a" is listed twice`) {
		t.Errorf("two tools of one name: %v", err)
	}
	both, one := newSet(t, b, a), newSet(t, b)
	if s := both.Schemas(); len(s) != 2 || s[0].Name != "b" || s[1].Name != "a" {
		t.Errorf("%+v", s)
	}
	for set, class := range map[*tools.Set]string{both: "", one: schemas.ErrUnknownTool} {
		o, err := set.Call(t.Context(), nil, schemas.ToolCall{Name: "a"})
		if err != nil || o.ErrorClass != class {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// The observation of a handler that fails names the tool and the event. The other handlers
// still run. Only the death of the sandbox is an error.
func TestA24FailingHandlerIsAnObservation(t *testing.T) {
	var none map[string]int
	broken := listener("broken", func() (schemas.Observation, error) {
		none["x"] = 1
		return quiet()
	})
	refusing := listener("refusing", func() (schemas.Observation, error) {
		return schemas.Observation{}, tools.NewUserError("no session")
	})
	later := listener("later", func() (schemas.Observation, error) { return schemas.Observation{Text: "heard"}, nil })
	observations, err := newSet(t, broken, refusing, later).Notify(t.Context(), nil, env.Event{Kind: env.EventFileChange})
	if err != nil || len(observations) != 3 {
		t.Fatalf("%+v, %v", observations, err)
	}
	if o := observations[0]; o.Source != "broken" || o.ErrorClass != schemas.ErrToolException || !strings.Contains(o.Text, "broken") || !strings.Contains(o.Text, "file_change") {
		t.Errorf("a panic: %+v", o)
	}
	if o := observations[1]; o.Source != "refusing" || o.ErrorClass != schemas.ErrUserError {
		t.Errorf("a mistake: %+v", o)
	}
	if observations[2].Text != "heard" {
		t.Errorf("the tool after them: %+v", observations[2])
	}
	dead := listener("dead", func() (schemas.Observation, error) {
		return schemas.Observation{}, fmt.Errorf("asking: %w", env.ErrSandboxDied)
	})
	observations, err = newSet(t, later, dead, broken).Notify(t.Context(), nil, env.Event{Kind: env.EventReset})
	if !errors.Is(err, env.ErrSandboxDied) || len(observations) != 1 || !strings.Contains(err.Error(), "dead") || !strings.Contains(err.Error(), "reset") {
		t.Errorf("%+v, %v", observations, err)
	}
}
