package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/hostile"
)

// Config configures a soak. Open and Calls are required.
type Config struct {
	// Open creates an environment of the hostile repository; sandbox returns its current
	// sandbox.
	Open     func(ctx context.Context) (e env.Env, sandbox func() env.Sandbox, err error)
	Isolated bool // the driver isolates programs; otherwise only harmless cases run
	Calls    int
	Workers  int // 0 = 4
	Seed     uint64
	Share    float64 // share of hostile cases among the calls, 0 to 1
	Only     string  // if set, run only this case and no ordinary calls
	// Progress, if not nil, is called about once per second with the results so far.
	Progress func(Report)
}

// ErrNoCase means that Only does not name a case that may run.
var ErrNoCase = errors.New("no case")

// perSandbox is the number of calls after which a sandbox is replaced.
const perSandbox = 1000

// soak is the state of one call of Run.
type soak struct {
	cfg   Config
	cases []hostile.Case
	next  atomic.Int64
	tally tally
}

// Run makes the calls and returns a report. The report counts wrong results; an error means
// that an environment could not be created. If ctx ends, Run returns the results so far.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Workers <= 0 {
		cfg.Workers = 4
	}
	s := &soak{cfg: cfg, tally: newTally()}
	for _, c := range hostile.Corpus() {
		if (cfg.Isolated || c.Harmless) && (cfg.Only == "" || cfg.Only == c.Name) {
			s.cases = append(s.cases, c)
		}
	}
	if len(s.cases) == 0 {
		return Report{}, fmt.Errorf("%w %q among the cases that can run here%s", ErrNoCase, cfg.Only, suggestCases(cfg))
	}
	before := takeFootprint()
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var openErr error // of the first worker that could not create an environment
	var once sync.Once
	var workers, watcher sync.WaitGroup
	done := make(chan struct{})
	if cfg.Progress != nil {
		watcher.Go(func() { s.reportProgress(done, began) })
	}
	for n := range cfg.Workers {
		workers.Go(func() {
			w := &worker{soak: s, number: n}
			if err := w.work(ctx); err != nil && ctx.Err() == nil {
				once.Do(func() { openErr = err })
				cancel()
			}
		})
	}
	workers.Wait()
	close(done)
	watcher.Wait()
	r := s.tally.report(time.Since(began))
	r.Seed, r.Workers, r.Share = cfg.Seed, cfg.Workers, cfg.Share
	r.Leaked = takeFootprint().since(before)
	return r, openErr
}

// suggestCases returns the end of a message with the cases that share a word with cfg.Only.
func suggestCases(cfg Config) string {
	var names []string
	for _, c := range hostile.Corpus() {
		for word := range strings.FieldsSeq(strings.ToLower(cfg.Only)) {
			if (cfg.Isolated || c.Harmless) && len(word) > 2 && strings.Contains(strings.ToLower(c.Name), word) {
				names = append(names, strconv.Quote(c.Name))
				break
			}
		}
	}
	if len(names) == 0 {
		return ": a soak without --only lists their names at the end"
	}
	return ": there are " + strings.Join(names, ", ")
}

// reportProgress calls cfg.Progress once per second until done is closed.
func (s *soak) reportProgress(done <-chan struct{}, began time.Time) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			s.cfg.Progress(s.tally.report(time.Since(began)))
		}
	}
}

// worker makes calls in an environment, which it replaces from time to time.
type worker struct {
	soak    *soak
	number  int
	harness *hostile.Harness
	calls   int // in this environment
	state   state
}

func (w *worker) work(ctx context.Context) error {
	defer w.close(ctx)
	for ctx.Err() == nil {
		index := int(w.soak.next.Add(1)) - 1
		if index >= w.soak.cfg.Calls {
			return nil
		}
		if w.harness == nil {
			if err := w.open(ctx); err != nil {
				return err
			}
		}
		// A call depends only on the seed and its index.
		r := rand.New(rand.NewPCG(w.soak.cfg.Seed, uint64(index)))
		ok := false
		if w.soak.cfg.Only != "" || r.Float64() < w.soak.cfg.Share {
			ok = w.hostile(ctx, index, r)
		} else {
			ok = w.ordinary(ctx, index, r)
		}
		if w.calls++; !ok || w.calls >= perSandbox {
			w.close(ctx)
		}
	}
	return nil
}

func (w *worker) open(ctx context.Context) error {
	e, sandbox, err := w.soak.cfg.Open(ctx)
	if err != nil {
		return err
	}
	w.harness = &hostile.Harness{Env: e, Sandbox: sandbox, Isolated: w.soak.cfg.Isolated}
	w.calls, w.state = 0, state{}
	w.soak.tally.addSandbox()
	return w.harness.Reset(ctx)
}

func (w *worker) close(ctx context.Context) {
	if w.harness == nil {
		return
	}
	_ = w.harness.Env.Close(context.WithoutCancel(ctx))
	w.harness = nil
}

// hostile runs a case. It returns false if the environment must be replaced.
func (w *worker) hostile(ctx context.Context, index int, r *rand.Rand) bool {
	c := w.soak.draw(r)
	v := w.harness.RunCase(ctx, c)
	if ctx.Err() != nil {
		return false
	}
	w.soak.tally.addHostile(index, v)
	w.state = state{} // the case may have changed anything
	w.harness.ForgetDebugger()
	return !v.Died && v.Err == nil && !v.Failed()
}

// draw picks a random case. Rare cases are picked less often.
func (s *soak) draw(r *rand.Rand) hostile.Case {
	for {
		c := s.cases[r.IntN(len(s.cases))]
		if c.Rare <= 1 || len(s.cases) == 1 || r.IntN(c.Rare) == 0 {
			return c
		}
	}
}

// Footprint is the resource usage of the process.
type Footprint struct {
	Descriptors int   `json:"descriptors"`
	Goroutines  int   `json:"goroutines"`
	HeapBytes   int64 `json:"heap_bytes"`
}

func takeFootprint() Footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd") // empty without /proc
	return Footprint{Descriptors: len(fds), Goroutines: runtime.NumGoroutine(), HeapBytes: int64(m.HeapAlloc)}
}

func (f Footprint) since(before Footprint) Footprint {
	return Footprint{
		Descriptors: f.Descriptors - before.Descriptors,
		Goroutines:  f.Goroutines - before.Goroutines,
		HeapBytes:   f.HeapBytes - before.HeapBytes,
	}
}
