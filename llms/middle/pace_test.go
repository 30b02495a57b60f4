package middle_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// call makes one call through a Pace and returns when it began.
func call(t *testing.T, p *middle.Pace, reserve, used float64, lasts time.Duration, err error) time.Time {
	t.Helper()
	if err := p.Begin(t.Context(), reserve); err != nil {
		t.Error(err)
	}
	at := time.Now()
	time.Sleep(lasts)
	p.End(reserve, used, err)
	return at
}

func TestPaceTokensAreReservedAndSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := middle.NewPace(middle.PaceConfig{TPM: 6000}) // refills 100 per second, holds 1500
		start := time.Now()
		first := call(t, p, 1500, 1500, 0, nil)
		second := call(t, p, 1000, 200, 0, nil) // waits for the tokens it reserves, not for those it uses
		third := call(t, p, 1000, 1000, 0, nil) // can use the 800 that were returned
		fourth := call(t, p, 9000, 9000, 0, nil)
		fifth := call(t, p, 1, 1, 0, nil) // waits until the overdraft is refilled
		for i, want := range []time.Duration{0, 10 * time.Second, 12 * time.Second, 27 * time.Second, 102*time.Second + 10*time.Millisecond} {
			if got := []time.Time{first, second, third, fourth, fifth}[i].Sub(start); got.Round(time.Millisecond) != want {
				t.Errorf("call %d began after %s, want %s", i, got, want)
			}
		}
	})
}

func TestPaceFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := middle.NewPace(middle.PaceConfig{Parallel: 10})
		var running, most atomic.Int64
		limit := &llms.Error{Class: llms.ClassRateLimit}
		round := func(err error) {
			most.Store(0)
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					if err := p.Begin(t.Context(), 0); err != nil {
						t.Error(err)
					}
					for n := running.Add(1); ; { // other goroutines do the same
						if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
							break
						}
					}
					time.Sleep(time.Second)
					running.Add(-1)
					p.End(0, 0, err)
				})
			}
			wg.Wait()
		}
		round(&llms.Error{Class: llms.ClassServer, Status: 503})
		if most.Load() != 10 || p.State().Parallel != 10 {
			t.Errorf("%d parallel calls, then %v: server errors must not reduce them", most.Load(), p.State().Parallel)
		}
		call(t, p, 0, 0, 0, limit)
		if p.State().Parallel != 1 {
			t.Errorf("%v parallel calls after one refusal", p.State().Parallel)
		}
		round(nil)
		if got := p.State().Parallel; got < 5 || got > 10 {
			t.Errorf("%v parallel calls after 40 answers", got)
		}
		round(nil)
		time.Sleep(time.Minute)
		round(limit)
		// 40 refusals within the cooldown count once, or twice if it ends between them.
		if got := p.State().Parallel; got < 6 || got > 8 {
			t.Errorf("%v parallel calls after a wave of refusals", got)
		}
	})
}

func TestPaceWithoutLimitLearnsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := middle.NewPace(middle.PaceConfig{})
		if !math.IsInf(p.State().Parallel, 1) {
			t.Fatal(p.State().Parallel)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { call(t, p, 0, 0, time.Second, &llms.Error{Class: llms.ClassRateLimit}) })
		}
		wg.Wait()
		if p.State().Parallel != 16 {
			t.Errorf("%v parallel calls after 20 were too many", p.State().Parallel)
		}
	})
}

func TestPaceRetryAfterDelaysAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := middle.NewPace(middle.PaceConfig{})
		call(t, p, 0, 0, 0, &llms.Error{Class: llms.ClassRateLimit, RetryAfter: 20 * time.Second})
		start := time.Now()
		if waited := call(t, p, 0, 0, 0, nil).Sub(start); waited != 20*time.Second {
			t.Errorf("the next call waited %s", waited)
		}
	})
}

func TestPaceOrderAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := middle.NewPace(middle.PaceConfig{RPM: 6})
		call(t, p, 0, 0, 0, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() { time.Sleep(time.Second); cancel(gone) }()
		if err := p.Begin(ctx, 0); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				call(t, p, 0, 0, 0, nil)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
		}
		wg.Wait()
		for i, n := range order {
			if i != n {
				t.Errorf("order %v", order)
			}
		}
	})
}

// tripleCounter is an endpoint that reports three times as many tokens as the client estimates.
type tripleCounter struct{ llms.Client }

func (tripleCounter) Model() string { return "m" }
func (tripleCounter) Chat(_ context.Context, r llms.Request) (llms.Response, error) {
	n := int64(3 * tokens.For("m").Prompt(r))
	return llms.Response{Reply: schemas.Reply{Usage: &schemas.Usage{Prompt: n}}}, nil
}

// After a server has counted one prompt, the reservation for the next is scaled to the
// server's count.
func TestReservationsFollowTheServersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := llms.Request{Messages: []llms.Message{{Content: strings.Repeat("word ", 400)}}, Sampling: llms.Sampling{MaxTokens: new(1)}}
		counted := tokens.For("m").Prompt(ask)
		c, err := middle.Wrap([]middle.Endpoint{{Client: tripleCounter{}, Pace: middle.NewPace(middle.PaceConfig{TPM: 6000})}}, middle.Config{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 2 {
			if _, err := c.Chat(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
		}
		want := time.Duration(2*3*counted+1-1500) * 10 * time.Millisecond // refills 100 per second, holds 1500
		if got := time.Since(start); got.Round(10*time.Millisecond) != want {
			t.Errorf("the second call began after %s, want %s", got, want)
		}
	})
}

// slowModel is an endpoint whose calls take five seconds.
type slowModel struct{ tripleCounter }

func (s slowModel) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	time.Sleep(5 * time.Second)
	return s.tripleCounter.Chat(ctx, r)
}

// A call without a limit for its answer reserves the longest possible answer, and holds these
// tokens until it has ended. A call with a low limit reserves few.
func TestLongestAnswerIsReserved(t *testing.T) {
	for name, c := range map[string]struct {
		limit llms.Sampling
		want  time.Duration
	}{
		"no limit":    {llms.Sampling{}, 10 * time.Second},
		"short limit": {llms.Sampling{MaxTokens: new(100)}, 5 * time.Second},
		"extra field": {llms.Sampling{Extra: map[string]any{"max_completion_tokens": 16000}}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := middle.Wrap([]middle.Endpoint{{Client: slowModel{}, Pace: middle.NewPace(middle.PaceConfig{TPM: 60000})}}, middle.Config{}) // holds 15,000
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if _, err := client.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Content: "go"}}, Sampling: c.limit}); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if got := time.Since(start).Round(time.Second); got != c.want {
					t.Errorf("both calls ended after %s, want %s", got, c.want)
				}
			})
		})
	}
}
