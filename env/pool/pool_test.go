package pool_test

import (
	"context"
	"errors"
	"path"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/pool"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

// counted is a driver whose sandboxes are known by number, and which fails while
// broken. A Start waits for gate where there is one.
type counted struct {
	env.Driver
	mu      sync.Mutex
	started []*numbered
	labels  []string
	broken  error
	gate    chan struct{}
}

type numbered struct {
	env.Sandbox
	number int
	dead   bool
	closed int
	mu     sync.Mutex
}

func (d *counted) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.labels = append(d.labels, spec.Label)
	if d.broken != nil {
		return nil, d.broken
	}
	s := &numbered{number: len(d.started)}
	d.started = append(d.started, s)
	return s, nil
}

func (d *counted) set(broken error, gate chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken, d.gate = broken, gate
}

func (d *counted) attempts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.labels)
}

// Stat takes long enough for the background to fill the place of the sandbox
// that is being asked.
func (s *numbered) Stat(context.Context, string) (env.FileInfo, error) {
	for range 100 {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return env.FileInfo{}, &env.DiedError{Reason: "killed"}
	}
	return env.FileInfo{IsDir: true}, nil
}

func (s *numbered) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *numbered) ends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// eventually waits for a condition that the background brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

func open(t *testing.T, d env.Driver, cfg pool.Config) *pool.Pool {
	t.Helper()
	cfg.Driver = d
	p := pool.New(cfg)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func start(t *testing.T, p *pool.Pool, spec env.SandboxSpec) *numbered {
	t.Helper()
	sb, err := p.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sb.(*numbered)
}

func TestWarmSandboxesHaveOneOwnerEach(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 3})
	owners := map[int]int{start(t, p, env.SandboxSpec{Workdir: "/w"}).number: 1}
	eventually(t, "three ready", func() bool { return p.Ready() == 3 })
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				sb, err := p.Start(t.Context(), env.SandboxSpec{Workdir: "/w"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				owners[sb.(*numbered).number]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n, times := range owners {
		if times != 1 {
			t.Errorf("sandbox %d was handed out %d times", n, times)
		}
	}
	if s := p.Stats(); len(owners) != 401 || s.Warm+s.Cold != 401 || s.Warm == 0 {
		t.Errorf("%d sandboxes, %+v", len(owners), s)
	}
}

// W-L8: no warm pool, a fresh container per attempt is waited for.
func TestWL8SecondSandboxIsReady(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 2})
	start(t, p, env.SandboxSpec{Label: "a"})
	eventually(t, "two ready", func() bool { return p.Ready() == 2 })
	gate := make(chan struct{})
	d.set(nil, gate) // no start can finish now
	start(t, p, env.SandboxSpec{Label: "b"})
	if s := p.Stats(); s.Warm != 1 || s.Cold != 1 {
		t.Errorf("%+v, want one of each", s)
	}
	if d.labels[0] != "a" || d.labels[1] != pool.Label {
		t.Errorf("labels %q: the caller's own start carries its label, one in the background %q", d.labels, pool.Label)
	}
	close(gate)
}

func TestSpecsDoNotMix(t *testing.T) {
	for _, spec := range []env.SandboxSpec{
		{Image: "i"}, {Python: "/p"}, {Workdir: "/w"}, {Env: []string{"A=1"}},
		{Mounts: []env.Mount{{Host: "/h", Path: "/m"}}}, {Limits: env.Limits{Processes: 7}},
	} {
		p := open(t, &counted{}, pool.Config{Size: 1})
		start(t, p, env.SandboxSpec{})
		eventually(t, "one ready", func() bool { return p.Ready() == 1 })
		start(t, p, spec)
		if s := p.Stats(); s.Cold != 2 || s.Warm != 0 {
			t.Errorf("%+v: what was ready for another spec is not ready for %+v", s, spec)
		}
	}
}

func TestBuildSandboxesAreNeverWarm(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 2})
	start(t, p, env.SandboxSpec{Network: true})
	start(t, p, env.SandboxSpec{Mounts: []env.Mount{{Host: "/h", Path: "/m", Write: true}}})
	if p.Ready() != 0 || d.attempts() != 2 {
		t.Errorf("%d ready after %d starts", p.Ready(), d.attempts())
	}
}

func TestDeadWarmSandboxIsNotHandedOut(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 1})
	start(t, p, env.SandboxSpec{})
	eventually(t, "one ready", func() bool { return p.Ready() == 1 })
	d.mu.Lock()
	dead := d.started[1]
	d.mu.Unlock()
	dead.mu.Lock()
	dead.dead = true
	dead.mu.Unlock()
	if got := start(t, p, env.SandboxSpec{}); got == dead {
		t.Fatal("a dead sandbox was handed out")
	}
	eventually(t, "the dead one is closed", func() bool { return dead.ends() == 1 })
	if s := p.Stats(); s.Dead != 1 {
		t.Errorf("%+v", s)
	}
}

func TestFailingDriverTellsTheCallerAndIsLeftAlone(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 2})
	broken := errors.New("no daemon")
	d.set(broken, nil)
	for range 100 {
		if _, err := p.Start(t.Context(), env.SandboxSpec{}); !errors.Is(err, broken) {
			t.Fatalf("%v, want the driver's own error", err)
		}
	}
	if n := d.attempts() - 100; n > 20 {
		t.Errorf("%d background starts against a driver that fails", n)
	}
	d.set(nil, nil)
	start(t, p, env.SandboxSpec{})
	eventually(t, "the background works again", func() bool { return p.Ready() > 0 })
}

func TestIdleSandboxesExpire(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 2, Idle: 50 * time.Millisecond})
	mine := start(t, p, env.SandboxSpec{})
	eventually(t, "both expire", func() bool { return p.Stats().Expired == 2 && p.Ready() == 0 })
	if mine.ends() != 0 {
		t.Error("the pool closed a sandbox that has an owner")
	}
}

func TestManySpecsShareTheTotal(t *testing.T) {
	d := &counted{}
	p := open(t, d, pool.Config{Size: 2, Total: 4})
	for i := range 10 {
		start(t, p, env.SandboxSpec{Image: string(rune('a' + i))})
		eventually(t, "its shelf is full", func() bool {
			return d.attempts() == 3*(i+1) && p.Ready() == min(2*(i+1), 4)
		})
	}
	start(t, p, env.SandboxSpec{Image: "j"})
	if s := p.Stats(); s.Warm != 1 || s.Expired != 16 {
		t.Errorf("%+v: the spec asked for last must be ready", s)
	}
}

func TestCloseEndsWhatNobodyTook(t *testing.T) {
	d := &counted{}
	p := pool.New(pool.Config{Driver: d, Size: 4, Starts: 1})
	mine := start(t, p, env.SandboxSpec{})
	eventually(t, "four ready", func() bool { return p.Ready() == 4 })
	d.set(nil, make(chan struct{})) // the next start ends with the pool only
	start(t, p, env.SandboxSpec{})
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if mine.ends() != 0 {
		t.Error("the pool closed a sandbox that has an owner")
	}
	closed := 0
	for _, s := range d.started {
		closed += s.ends()
	}
	if closed != 3 {
		t.Errorf("%d of 3 closed", closed)
	}
	if _, err := p.Start(t.Context(), env.SandboxSpec{}); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestCancelledCallerGetsNothingAndLosesNothing(t *testing.T) {
	d := &counted{gate: make(chan struct{})}
	p := open(t, d, pool.Config{Size: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Start(ctx, env.SandboxSpec{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cancellation", err)
	}
}

// A real sandbox out of a pool is as fresh as any other.
func TestWarmBubblewrapIsFresh(t *testing.T) {
	p := open(t, envtest.Driver(t, "bubblewrap"), pool.Config{Size: 1})
	spec := env.SandboxSpec{Workdir: "/testbed"}
	for round := range 3 {
		sb, err := p.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sb.Stat(t.Context(), path.Join(spec.Workdir, "mine")); !errors.Is(err, env.ErrNotExist) {
			t.Errorf("round %d: %v, want an empty workspace", round, err)
		}
		if err := sb.WriteFile(t.Context(), "mine", []byte("x"), 0); err != nil {
			t.Error(err)
		}
		if err := sb.Close(t.Context()); err != nil {
			t.Error(err)
		}
		eventually(t, "the next is ready", func() bool { return p.Ready() == 1 })
	}
	if s := p.Stats(); s.Warm != 2 || s.Cold != 1 {
		t.Errorf("%+v", s)
	}
}
