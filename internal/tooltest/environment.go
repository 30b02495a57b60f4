package tooltest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/pdb"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Environment returns an environment of real components: bubblewrap, debugger,
// workspace, evaluation and every registered tool. It is closed at the end of the test.
// change must set the task and its tree, and may replace components. The test must import
// env/drivers/bubblewrap and tools/builtin.
func Environment(t testing.TB, change func(*env.Config)) *env.Environment {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := env.Config{
		Driver: envtest.Driver(t, "bubblewrap"), Toolbox: Set(t, Kit(t, nil)), Workspace: store, Evaluate: verify.Eval,
		CommandTimeout: 5 * time.Minute, // the machine may be busy
		NewDebugger: func(sb env.Sandbox, task schemas.Task) env.Debugger {
			return pdb.New(pdb.Config{Sandbox: sb, Workdir: task.Workdir, Entrypoint: cmp.Or(task.DebugEntrypoint, task.Entrypoint)})
		},
	}
	change(&cfg)
	e, err := env.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Set returns the tool set of a list of tools.
func Set(t testing.TB, list []tools.Tool) *tools.Set {
	t.Helper()
	set, err := tools.NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
