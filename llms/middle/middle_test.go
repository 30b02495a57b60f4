package middle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/schemas"
)

// steps is a model that goes through a list of answers and notes when it was
// asked; the network would stop the bubble's clock.
type steps struct {
	mu    sync.Mutex
	errs  []error
	usage *schemas.Usage
	at    []time.Time
}

func (s *steps) Provider() string { return "test" }
func (s *steps) Model() string    { return "m" }
func (s *steps) Chat(context.Context, llms.Request) (llms.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
			t.Errorf("waited %s, the server asked for 40s", first)
		}
		if second := s.at[2].Sub(s.at[1]); second <= 0 || second > 3*time.Second {
			t.Errorf("own wait %s", second)
		}
	})
}

func TestWC27RetriesAreBoundedAndEndTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{}
		for range 20 {
			s.errs = append(s.errs, &llms.Error{Class: llms.ClassUnreachable, Message: "no route"})
		}
		_, err := wrap(t, s, middle.Config{Retry: middle.RetryConfig{MaxTries: 4}}).Chat(t.Context(), llms.Request{})
		if llms.ClassOf(err) != llms.ClassUnreachable || !strings.Contains(err.Error(), "after 4 calls") || len(s.at) != 4 {
			t.Errorf("%d calls: %v", len(s.at), err)
		}
		// A server's own error (500) is worth another call, a refused key is not;
		// without settings there are six calls, not a hundred.
		for class, calls := range map[llms.Class]int{llms.ClassServer: 6, llms.ClassAuth: 1} {
			s := &steps{errs: slices.Repeat([]error{&llms.Error{Class: class}}, 20)}
			if _, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{}); llms.ClassOf(err) != class || len(s.at) != calls {
				t.Errorf("%s: %d calls: %v", class, len(s.at), err)
			}
		}
	})
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
	for _, class := range []llms.Class{llms.ClassAuth, llms.ClassQuota, llms.ClassContext, llms.ClassNotFound, llms.ClassRefused} {
		s := &steps{errs: []error{&llms.Error{Class: class}}}
		_, err := wrap(t, s, middle.Config{}).Chat(t.Context(), llms.Request{})
		if llms.ClassOf(err) != class || len(s.at) != 1 {
			t.Errorf("%s: %d calls, %v", class, len(s.at), err)
		}
	}
}

func TestCancelEndsTheWait(t *testing.T) {
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

func TestRate(t *testing.T) {
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
				t.Errorf("call %d came %s after the one before", i, gap)
			}
		}
	})
}

func TestBudgetHoldsUnderConcurrency(t *testing.T) {
	budget := middle.NewBudget(0.010, 0)
	tokens := 1000 // worst case per call: $0.001 and nothing for the empty prompt
	s := &steps{usage: &schemas.Usage{Completion: 500}}
	c := wrap(t, s, middle.Config{Budget: budget, Prices: middle.Prices{{Model: "m", Output: 1}}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range 50 {
		wg.Go(func() {
			_, err := c.Chat(t.Context(), llms.Request{Sampling: llms.Sampling{MaxTokens: &tokens}})
			if errors.Is(err, llms.ErrBudget) {
				mu.Lock()
				refused++
				mu.Unlock()
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	spent, exhausted := budget.Spent()
	if spent > 0.010 || spent < 0.0095 && refused == 0 || !exhausted || refused+len(s.at) != 50 {
		t.Errorf("spent %f, refused %d, made %d", spent, refused, len(s.at))
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
		t.Error("an unknown usage has a cost")
	}
	if free := (middle.Price{Free: true}).Cost(nil); free == nil || *free != 0 {
		t.Error("a free model has no cost of 0")
	}
	// Unknown price: no cost in the reply; with a limit it is refused at once.
	resp, err := wrap(t, &steps{usage: &schemas.Usage{Prompt: 1}}, middle.Config{Budget: middle.NewBudget(0, 0)}).Chat(t.Context(), llms.Request{})
	if err != nil || resp.Reply.CostUSD != nil {
		t.Errorf("cost %v, %v", resp.Reply.CostUSD, err)
	}
	if _, err := middle.Wrap([]middle.Endpoint{{Client: &steps{}}}, middle.Config{Budget: middle.NewBudget(1, 0)}); err == nil {
		t.Error("a budget over an unknown price is accepted")
	}
}

func TestFailedCallsAndTheBudget(t *testing.T) {
	tokens := 1_000_000
	req := llms.Request{Sampling: llms.Sampling{MaxTokens: &tokens}}
	for class, want := range map[llms.Class]float64{llms.ClassAuth: 0, llms.ClassRateLimit: 0, llms.ClassTimeout: 1} {
		budget := middle.NewBudget(10, 0)
		s := &steps{errs: []error{&llms.Error{Class: class}}}
		c := wrap(t, s, middle.Config{Budget: budget, Retry: middle.RetryConfig{MaxTries: 1}, Prices: middle.Prices{{Model: "m", Output: 1}}})
		if _, err := c.Chat(t.Context(), req); llms.ClassOf(err) != class {
			t.Error(err)
		}
		if spent, _ := budget.Spent(); spent != want {
			t.Errorf("%s: spent %f, want %f", class, spent, want)
		}
	}
}
