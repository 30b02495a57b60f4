package hostile_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/docker"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/hostile"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

// limits are small, so that cases use them up quickly and with little load on the host.
var limits = env.Limits{MemoryBytes: 384 << 20, DiskBytes: 96 << 20, Processes: 128}

// recordingDriver is a driver that records the sandbox that it started last.
type recordingDriver struct {
	env.Driver
	last env.Sandbox
}

func (d *recordingDriver) Start(ctx context.Context, spec env.SandboxSpec) (sb env.Sandbox, err error) {
	d.last, err = d.Driver.Start(ctx, spec)
	return d.last, err
}

// newHarness returns a harness with a sandbox of the given kind.
func newHarness(t *testing.T, kind string) *hostile.Harness {
	t.Helper()
	tasks, err := hostile.Repository{}.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := hostile.Repository{}.Tree(t.Context(), tasks[0].InstanceID)
	if err != nil {
		t.Fatal(err)
	}
	d := &recordingDriver{Driver: envtest.Driver(t, kind)}
	e := tooltest.Environment(t, func(c *env.Config) {
		c.Driver, c.Spec, c.Task, c.Tree = d, env.SandboxSpec{Label: t.Name(), Limits: limits}, tasks[0], files
	})
	p := &hostile.Harness{Env: e, Sandbox: func() env.Sandbox { return d.last }, Isolated: kind != "local"}
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// runCorpus runs the accepted cases of the corpus with several workers.
func runCorpus(t *testing.T, kind string, workers int, accept func(hostile.Case) bool) {
	cases := make(chan hostile.Case)
	var wg sync.WaitGroup
	for range workers {
		p := newHarness(t, kind)
		wg.Go(func() {
			for c := range cases {
				needsHarness := false
				t.Run(c.Name, func(t *testing.T) {
					v := p.RunCase(t.Context(), c)
					if v.Failed() {
						t.Error(v)
					}
					needsHarness = v.Failed() || v.Died
				})
				if needsHarness {
					p = newHarness(t, kind)
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
	runCorpus(t, "bubblewrap", 4, func(hostile.Case) bool { return true })
}

func TestDockerCorpus(t *testing.T) {
	suite.Docker.Require(t)
	runCorpus(t, "docker", 4, func(hostile.Case) bool { return true })
}

func TestHarmlessCorpusOnLocal(t *testing.T) {
	runCorpus(t, "local", 2, func(c hostile.Case) bool { return c.Harmless })
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

// A session's files outside its workspace are removed with its sandbox, even without a
// separate file system.
func TestLocalLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Run("session", func(t *testing.T) {
		p := newHarness(t, "local")
		where := p.Call(t.Context(), "bash", map[string]any{"command": "declare -f __tracesmith_save"}, hostile.DefaultLimit)
		if !strings.Contains(where.Text, ">| "+temp+"/") {
			t.Errorf("the shell saves its state with %q, which is not below %s", where.Text, temp)
		}
		if err := p.Sandbox().WriteFile(t.Context(), "hostile.sh", []byte("echo \"$TRACESMITH_CHANNEL\""), 0o644); err != nil {
			t.Fatal(err)
		}
		if a := p.Call(t.Context(), "eval", map[string]any{}, hostile.DefaultLimit); !strings.Contains(a.Text, temp+"/") {
			t.Errorf("the test results are in %q, which is not below %s", a.Text, temp)
		}
	})
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}
}
