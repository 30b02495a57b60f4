package policies_test

import (
	"os"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	_ "github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// realEnv returns an environment for a task of source in a bubblewrap sandbox, with the tools in kit.
func realEnv(t *testing.T, source env.Source, task schemas.Task, kit []tools.Tool) env.Env {
	t.Helper()
	tree, err := source.Tree(t.Context(), task.InstanceID)
	if err != nil {
		t.Fatal(err)
	}
	return tooltest.Environment(t, func(c *env.Config) {
		c.Task, c.Tree, c.Toolbox, c.CommandTimeout = task, tree, tooltest.Set(t, kit), time.Minute
	})
}

func builtinTasks(t *testing.T) (env.Source, []schemas.Task) {
	t.Helper()
	source, err := env.Sources.Build("builtin", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := source.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return source, tasks
}

// In a real sandbox with the real tools and pdb, both agents submit: the solution agent changes
// the code, and the noop agent does not.
func TestRealEnvironment(t *testing.T) {
	source, tasks := builtinTasks(t)
	kit := tooltest.Kit(t, nil)
	task := tasks[0]
	for _, kind := range []string{"solution", "noop"} {
		e := realEnv(t, source, task, kit)
		deps := agents.Deps{Task: task}
		if needs, err := agents.NeedsOf(kind, nil); err != nil {
			t.Fatal(err)
		} else if needs.Gold {
			deps.Gold = &agents.Privileged{GoldPatch: task.GoldPatch}
		}
		p, err := agents.Registry.Build(kind, nil, deps)
		if err != nil {
			t.Fatal(err)
		}
		res, err := agents.Run(t.Context(), agents.Config{Env: e, Policy: p, Task: task, Limits: agents.Limits{MaxSteps: 60, Wall: 5 * time.Minute}})
		if err != nil || res.ExitReason != schemas.ExitSubmitted {
			t.Fatalf("%s on %s: exit %s, %v\n%s", kind, task.InstanceID, res.ExitReason, err, transcript(res))
		}
		patch, _, err := e.Patch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if changed := len(patch) > 0; changed != (kind == "solution") {
			t.Errorf("%s: patch %q", kind, patch)
		}
	}
}

func transcript(res agents.Result) string {
	out := ""
	for _, s := range res.Steps {
		if s.ToolCall != nil {
			out += "> " + s.ToolCall.Name + " " + string(s.ToolCall.Arguments) + "\n"
		}
		if s.Observation != nil {
			out += s.Observation.Text + "\n"
		}
	}
	return out
}
