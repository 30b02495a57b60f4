package hostile_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/hostile"
	"github.com/tracesmith/tracesmith/env/pdb"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

// limits are small, so that using them up is quick and costs the host little.
var limits = env.Limits{MemoryBytes: 384 << 20, DiskBytes: 96 << 20, Processes: 128}

// maker makes places of one sandbox kind.
type maker struct {
	driver env.Driver
	store  *workspace.Store
	set    *tools.Set
	task   schemas.Task
	tree   env.Tree
}

func newMaker(t *testing.T, kind string) *maker {
	t.Helper()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m := &maker{}
	var err error
	m.driver, err = env.Drivers.Build(kind, nil, struct{}{})
	fail(err)
	m.store, err = workspace.Open(filepath.Join(t.TempDir(), "git"))
	fail(err)
	var list []tools.Tool
	for _, name := range []string{"bash", "pdb", "eval", "view"} {
		tool, err := tools.Registry.Build(name, nil, struct{}{})
		fail(err)
		list = append(list, tool)
	}
	m.set, err = tools.NewSet(list)
	fail(err)
	tasks, err := hostile.Repository{}.Tasks(t.Context())
	fail(err)
	m.task = tasks[0]
	m.tree, err = hostile.Repository{}.Tree(t.Context(), m.task.InstanceID)
	fail(err)
	return m
}

// remembering is a driver that knows its last sandbox.
type remembering struct {
	env.Driver
	now env.Sandbox
}

func (d *remembering) Start(ctx context.Context, spec env.SandboxSpec) (sb env.Sandbox, err error) {
	d.now, err = d.Driver.Start(ctx, spec)
	return d.now, err
}

func (m *maker) place(t *testing.T) *hostile.Place {
	t.Helper()
	d := &remembering{Driver: m.driver}
	e, err := env.New(env.Config{
		Driver: d, Spec: env.SandboxSpec{Label: t.Name(), Limits: limits}, Task: m.task, Tree: m.tree,
		Toolbox: m.set, Workspace: m.store,
		NewDebugger: func(sb env.Sandbox, t schemas.Task) env.Debugger {
			return pdb.New(pdb.Config{Sandbox: sb, Workdir: t.Workdir, Entrypoint: t.DebugEntrypoint})
		},
		Evaluate: verify.Eval,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &hostile.Place{Env: e, Sandbox: func() env.Sandbox { return d.now }, Isolated: m.driver.Name() != "local"}
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// play plays the corpus in a few places at once.
func play(t *testing.T, kind string, workers int, accept func(hostile.Case) bool) {
	m := newMaker(t, kind)
	cases := make(chan hostile.Case)
	var wg sync.WaitGroup
	for range workers {
		p := m.place(t)
		wg.Go(func() {
			for c := range cases {
				again := false
				t.Run(c.Name, func(t *testing.T) {
					v := p.Play(t.Context(), c)
					if v.Failed() {
						t.Error(v)
					}
					again = v.Failed() || v.Died
				})
				if again {
					p = m.place(t)
				}
			}
		})
	}
	for _, c := range hostile.Corpus() {
		if accept(c) {
			cases <- c
		}
	}
	close(cases)
	wg.Wait()
}

func TestCorpusOnBubblewrap(t *testing.T) {
	play(t, "bubblewrap", 4, func(hostile.Case) bool { return true })
}

func TestCorpusOnDocker(t *testing.T) {
	if os.Getenv("TRACESMITH_TEST_DOCKER") != "1" {
		t.Skip("TRACESMITH_TEST_DOCKER=1 runs this; it needs a daemon and scripts/docker-image.sh's image")
	}
	play(t, "docker", 4, func(hostile.Case) bool { return true })
}

func TestHarmlessCorpusOnLocal(t *testing.T) {
	play(t, "local", 2, func(c hostile.Case) bool { return c.Harmless })
}

func TestCaseNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range hostile.Corpus() {
		if seen[c.Name] {
			t.Errorf("two cases are named %q", c.Name)
		}
		seen[c.Name] = true
	}
	if len(seen) < 180 {
		t.Errorf("only %d cases", len(seen))
	}
}
