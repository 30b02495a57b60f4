package middle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/schemas"
)

// steps is a client that returns a list of answers and records the times of calls. A real
// connection would stop the clock of synctest.
type steps struct {
	mu    sync.Mutex
	errs  []error
	usage *schemas.Usage
	at    []time.Time
	last  llms.Request
}

func (s *steps) Provider() string { return "test" }
func (s *steps) Model() string    { return "m" }
func (s *steps) Chat(_ context.Context, r llms.Request) (llms.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = r
	s.at = append(s.at, time.Now())
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		if err != nil {
			return llms.Response{}, err
		}
	}
	return llms.Response{Reply: schemas.Reply{LLMCalls: 1, Usage: s.usage}}, nil
}

func wrap(t *testing.T, c llms.Client, cfg middle.Config) llms.Client {
	t.Helper()
	out, err := middle.Wrap([]middle.Endpoint{{Client: c}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{errs: []error{
			&llms.Error{Class: llms.ClassRateLimit, RetryAfter: 40 * time.Second},
			&llms.Error{Class: llms.ClassServer},
		}}
		resp, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{})
		if err != nil || resp.Reply.LLMCalls != 3 || resp.Reply.Retries != 2 {
			t.Fatalf("%+v, %v", resp.Reply, err)
		}
		if first := s.at[1].Sub(s.at[0]); first != 40*time.Second {
			t.Errorf("waited %s, but the server asked for 40s", first)
		}
		if second := s.at[2].Sub(s.at[1]); second <= 0 || second > 3*time.Second {
			t.Errorf("waited %s without a Retry-After", second)
		}
	})
}

// This test proves row WC27 of docs/internals/parity.md.
func TestWC27RetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{}
		for range 20 {
			s.errs = append(s.errs, &llms.Error{Class: llms.ClassUnreachable, Message: "no route"})
		}
		_, err := wrap(t, s, middle.Config{Retry: middle.RetryConfig{MaxTries: 4}}).Chat(t.Context(), llms.Request{})
		if llms.ClassOf(err) != llms.ClassUnreachable || !strings.Contains(err.Error(), ", 4 tries: no route") || len(s.at) != 4 {
			t.Errorf("%d calls: %v", len(s.at), err)
		}
		// An internal error (500) is retried, by default until there were six calls. A refused
		// key is not retried.
		for class, calls := range map[llms.Class]int{llms.ClassServer: 6, llms.ClassAuth: 1} {
			s := &steps{errs: slices.Repeat([]error{&llms.Error{Class: class}}, 20)}
			if _, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{}); llms.ClassOf(err) != class || len(s.at) != calls {
				t.Errorf("%s: %d calls: %v", class, len(s.at), err)
			}
		}
	})
}

// Each of five failures has its own effect on the call, on other calls and on the number of
// parallel calls.
func TestG9EachErrorClassIsHandled(t *testing.T) {
	for name, c := range map[string]struct {
		err         llms.Error
		calls       int           // tries of the call, including the successful one
		least, most time.Duration // wait before the retry
		neighbour   time.Duration // how long another call waits
		parallel    float64       // parallel calls afterwards, of 10
	}{
		"rate limit, Retry-After":  {llms.Error{Class: llms.ClassRateLimit, Status: 429, RetryAfter: 20 * time.Second}, 2, 20 * time.Second, 20 * time.Second, 20 * time.Second, 1},
		"rate limit":               {llms.Error{Class: llms.ClassRateLimit, Status: 429}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, 0, 1},
		"too many parallel calls":  {llms.Error{Class: llms.ClassConcurrency, Status: 429, RetryAfter: 2 * time.Second}, 2, 2 * time.Second, 2 * time.Second, 0, 1},
		"overload":                 {llms.Error{Class: llms.ClassOverload, Status: 529}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, 0, 10},
		"overload, Retry-After":    {llms.Error{Class: llms.ClassOverload, Status: 503, RetryAfter: 9 * time.Second}, 2, 9 * time.Second, 9 * time.Second, 0, 10},
		"timeout":                  {llms.Error{Class: llms.ClassTimeout}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, 0, 10},
		"no credit":                {llms.Error{Class: llms.ClassQuota, Status: 429, RetryAfter: time.Minute}, 1, 0, 0, 0, 10},
		"policy forbids an answer": {llms.Error{Class: llms.ClassRefusal, Status: 400}, 1, 0, 0, 0, 10},
		"prompt too long":          {llms.Error{Class: llms.ClassContext, Status: 400}, 1, 0, 0, 0, 10},
		"key refused":              {llms.Error{Class: llms.ClassAuth, Status: 401}, 1, 0, 0, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &steps{errs: []error{&c.err}}
				pace := middle.NewPace(middle.PaceConfig{Parallel: 10})
				client, err := middle.Wrap([]middle.Endpoint{{Client: s, Pace: pace}}, middle.Config{})
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				start := time.Now()
				var neighbour time.Duration
				wg.Go(func() {
					time.Sleep(time.Nanosecond) // lets the first call fail
					if got := pace.State().Parallel; got != c.parallel {
						t.Errorf("%v parallel calls, want %v", got, c.parallel)
					}
					if err := pace.Begin(t.Context(), 0); err != nil {
						t.Error(err)
					}
					neighbour = time.Since(start)
					pace.End(0, 0, nil)
				})
				resp, err := client.Chat(t.Context(), llms.Request{})
				wg.Wait()
				if c.calls == 1 && llms.ClassOf(err) != c.err.Class || c.calls > 1 && (err != nil || resp.Reply.LLMCalls != c.calls) || len(s.at) != c.calls {
					t.Fatalf("%d calls, %+v, %v", len(s.at), resp.Reply, err)
				}
				if again := s.at[len(s.at)-1].Sub(start); again < c.least || again > c.most {
					t.Errorf("retried after %s, want %s to %s", again, c.least, c.most)
				}
				if neighbour.Round(time.Millisecond) != c.neighbour {
					t.Errorf("another call waited %s, want %s", neighbour, c.neighbour)
				}
			})
		})
	}
}

func TestRetryDoesNotWaitPastItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{errs: []error{&llms.Error{Class: llms.ClassRateLimit, RetryAfter: 5 * time.Hour}}}
		start := time.Now()
		_, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{})
		if llms.ClassOf(err) != llms.ClassRateLimit || time.Since(start) > time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestFatalErrorsAreNotRepeated(t *testing.T) {
	for _, class := range []llms.Class{llms.ClassAuth, llms.ClassQuota, llms.ClassContext, llms.ClassNotFound, llms.ClassBadRequest} {
		s := &steps{errs: []error{&llms.Error{Class: class}}}
		_, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{})
		if llms.ClassOf(err) != class || len(s.at) != 1 {
			t.Errorf("%s: %d calls, %v", class, len(s.at), err)
		}
	}
}

func TestCancelEndsTheRetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{errs: []error{&llms.Error{Class: llms.ClassRateLimit, RetryAfter: time.Minute}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := wrap(t, s, middle.Config{}).Chat(ctx, llms.Request{})
		if !errors.Is(err, context.DeadlineExceeded) || llms.ClassOf(err) != "" {
			t.Errorf("got %v", err)
		}
	})
}

func TestPaceLimitsRequestsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{}
		c, err := middle.Wrap([]middle.Endpoint{{Client: s, Pace: middle.NewPace(middle.PaceConfig{RPM: 30})}}, middle.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := c.Chat(t.Context(), llms.Request{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(s.at); i++ {
			if gap := s.at[i].Sub(s.at[i-1]); gap < 1999*time.Millisecond {
				t.Errorf("call %d was made %s after the one before", i, gap)
			}
		}
	})
}

// recordingAccount is an account that records reservations and payments.
type recordingAccount struct {
	worst []float64
	paid  []schemas.Payment
	deny  error

	attempt, fromCache int
	retries            []llms.Class
}

func (p *recordingAccount) Begin(ctx context.Context, worst float64) (context.Context, error) {
	if p.deny != nil {
		return nil, p.deny
	}
	p.worst = append(p.worst, worst)
	return ctx, nil
}

func (p *recordingAccount) End(_ context.Context, paid schemas.Payment) error {
	p.paid = append(p.paid, paid)
	return nil
}

func (p *recordingAccount) FromCache()   { p.fromCache++ }
func (p *recordingAccount) Attempt() int { return p.attempt }
func (p *recordingAccount) Waiting(w llms.Wait, cause error) {
	if w == llms.WaitRetry {
		p.retries = append(p.retries, llms.ClassOf(cause))
	}
}

// Each try begins and ends in the account, which learns why the next one has to wait. A try that the
// account refuses is not made.
func TestEveryAttemptIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{usage: &schemas.Usage{Prompt: 10, Completion: 5}, errs: []error{&llms.Error{Class: llms.ClassServer, Status: 503}, &llms.Error{Class: llms.ClassTimeout}}}
		c := wrap(t, s, middle.Config{Limited: true, Prices: middle.Prices{{Model: "m", Output: 1}}})
		p := &recordingAccount{}
		ctx := llms.WithAccount(t.Context(), p)
		if _, err := c.Chat(ctx, llms.Request{}); err != nil {
			t.Fatal(err)
		}
		worst := llms.DefaultMaxTokens / 1e6
		want := []schemas.Payment{{Failed: true}, {Failed: true, AtRiskUSD: worst}, {Usage: s.usage, CostUSD: new(5 / 1e6)}}
		if diff := cmp.Diff(want, p.paid); diff != "" || !slices.Equal(p.worst, []float64{worst, worst, worst}) {
			t.Errorf("%v %s", p.worst, diff)
		}
		if !slices.Equal(p.retries, []llms.Class{llms.ClassServer, llms.ClassTimeout}) {
			t.Errorf("waits for a retry after %v", p.retries)
		}
		if got := s.last.Sampling.MaxTokens; got == nil || *got != llms.DefaultMaxTokens {
			t.Errorf("a request has no limit for the answer: %v", got)
		}
		p.deny = fmt.Errorf("no: %w", llms.ErrBudget)
		if _, err := c.Chat(ctx, llms.Request{}); !errors.Is(err, llms.ErrBudget) || len(s.at) != 3 {
			t.Errorf("%d calls: %v", len(s.at), err)
		}
	})
}

// The worst case assumes one token per byte, and the longest answer that any field of the
// request allows.
func TestWorstCaseIsAnUpperBound(t *testing.T) {
	text := strings.Repeat("\u4e16", 1000)
	many := 100
	for name, c := range map[string]struct {
		r    llms.Request
		want float64 // lower bound in millionths of a USD, at $1 per million prompt tokens and $10 per million output tokens
	}{
		"bytes":   {llms.Request{Messages: []llms.Message{{Role: "user", Content: text}}, Sampling: llms.Sampling{MaxTokens: &many}}, 3000 + 1000},
		"calls":   {llms.Request{Messages: []llms.Message{{ToolCalls: []schemas.ToolCall{{Raw: text}}}}, Sampling: llms.Sampling{MaxTokens: &many}}, 3000 + 1000},
		"raw":     {llms.Request{Messages: []llms.Message{{Raw: []byte(text)}}, Sampling: llms.Sampling{MaxTokens: &many}}, 3000 + 1000},
		"tools":   {llms.Request{Tools: []schemas.ToolSchema{{Description: text}}, Sampling: llms.Sampling{MaxTokens: &many}}, 3000 + 1000},
		"written": {llms.Request{Tools: []schemas.ToolSchema{{Name: "written to the cache", Description: text}}, Sampling: llms.Sampling{MaxTokens: &many}}, 6000 + 1000},
		"extra":   {llms.Request{Sampling: llms.Sampling{MaxTokens: &many, Extra: map[string]any{"max_completion_tokens": 5000.0}}}, 50_000},
		"default": {llms.Request{}, 10 * llms.DefaultMaxTokens},
	} {
		p := &recordingAccount{}
		s := &steps{usage: &schemas.Usage{}}
		price := middle.Price{Model: "m", Input: 1, Output: 10}
		if name == "written" {
			price.CacheWrite = new(2.0)
		}
		client := wrap(t, s, middle.Config{Limited: true, Prices: middle.Prices{price}})
		if _, err := client.Chat(llms.WithAccount(t.Context(), p), c.r); err != nil {
			t.Fatal(err)
		}
		if got := p.worst[0] * 1e6; got < c.want || got > c.want+1000 {
			t.Errorf("%s: worst case %g millionths, want slightly more than %g", name, got, c.want)
		}
	}
}

func TestCost(t *testing.T) {
	cached := 0.1
	price := middle.Price{Model: "m", Input: 1, Output: 2, Cached: &cached}
	got := price.Cost(&schemas.Usage{Prompt: 1000, Cached: 400, Completion: 100})
	if want := (600*1 + 400*0.1 + 100*2) / 1e6; got == nil || *got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if price.Cost(nil) != nil {
		t.Error("an answer without usage has a cost")
	}
	if free := (middle.Price{Free: true}).Cost(nil); free == nil || *free != 0 {
		t.Error("an answer of a free model does not have cost 0")
	}
	// With an unknown price the reply has no cost, and a budget is refused at once.
	resp, err := wrap(t, &steps{usage: &schemas.Usage{Prompt: 1}}, middle.Config{}).Chat(t.Context(), llms.Request{})
	if err != nil || resp.Reply.CostUSD != nil {
		t.Errorf("cost %v, %v", resp.Reply.CostUSD, err)
	}
	if _, err := middle.Wrap([]middle.Endpoint{{Client: &steps{}}}, middle.Config{Limited: true}); err == nil {
		t.Error("a budget with an unknown price was accepted")
	}
}

func TestFailedCallsCountTheirPossibleCost(t *testing.T) {
	tokens := 1_000_000
	for name, c := range map[string]struct {
		err  error
		want float64
	}{
		"refused key":      {&llms.Error{Class: llms.ClassAuth, Status: 401}, 0},
		"throttled":        {&llms.Error{Class: llms.ClassRateLimit, Status: 429}, 0},
		"overloaded":       {&llms.Error{Class: llms.ClassServer, Status: 503}, 0},
		"unreachable":      {&llms.Error{Class: llms.ClassUnreachable}, 0},
		"timeout":          {&llms.Error{Class: llms.ClassTimeout}, 1},
		"gateway timeout":  {&llms.Error{Class: llms.ClassTimeout, Status: 504}, 1},
		"bad gateway":      {&llms.Error{Class: llms.ClassServer, Status: 502}, 1},
		"proxy error 520":  {&llms.Error{Class: llms.ClassServer, Status: 520}, 1},
		"server error":     {&llms.Error{Class: llms.ClassServer, Status: 500}, 0},
		"connection broke": {&llms.Error{Class: llms.ClassServer}, 1},
		"broken answer":    {&llms.Error{Class: llms.ClassServer, Status: 200}, 1},
		"cancelled":        {context.Canceled, 1},
		"request invalid":  {&llms.Error{Class: llms.ClassBadRequest}, 0},
	} {
		p := &recordingAccount{}
		s := &steps{errs: []error{c.err}}
		client := wrap(t, s, middle.Config{Retry: middle.RetryConfig{MaxTries: 1}, Prices: middle.Prices{{Model: "m", Output: 1}}})
		if _, err := client.Chat(llms.WithAccount(t.Context(), p), llms.Request{Sampling: llms.Sampling{MaxTokens: &tokens}}); !errors.Is(err, c.err) {
			t.Error(err)
		}
		if diff := cmp.Diff([]schemas.Payment{{Failed: true, AtRiskUSD: c.want}}, p.paid); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
