package middle_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// With a budget, every request limits the length of its answer, whatever the caller's settings say.
func TestEveryRequestLimitsItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		s    llms.Sampling
		want int
	}{
		"not set":       {llms.Sampling{}, llms.DefaultMaxTokens},
		"zero":          {llms.Sampling{MaxTokens: new(0)}, llms.DefaultMaxTokens},
		"minus one":     {llms.Sampling{Extra: map[string]any{"max_tokens": -1}}, llms.DefaultMaxTokens},
		"another limit": {llms.Sampling{MaxTokens: new(500), Extra: map[string]any{"max_tokens": -1.0, "top_k": 3}}, 500},
		"text":          {llms.Sampling{Extra: map[string]any{"max_completion_tokens": "1000000"}}, llms.DefaultMaxTokens},
	} {
		s, p := &steps{usage: &schemas.Usage{}}, &recordingAccount{}
		client := wrap(t, s, middle.Config{Limited: true, Prices: middle.Prices{{Model: "m", Output: 1}}})
		before := len(c.s.Extra)
		if _, err := client.Chat(llms.WithAccount(t.Context(), p), llms.Request{Sampling: c.s}); err != nil {
			t.Fatal(err)
		}
		sent := s.last.Sampling
		if sent.MaxTokens == nil || *sent.MaxTokens != c.want || p.worst[0] != float64(c.want)/1e6 {
			t.Errorf("%s: sent max_tokens %v, reserved $%g", name, sent.MaxTokens, p.worst[0])
		}
		for _, field := range []string{"max_tokens", "max_completion_tokens"} {
			if v, ok := sent.Extra[field]; ok {
				t.Errorf("%s: the request contains %s = %v", name, field, v)
			}
		}
		if len(c.s.Extra) != before {
			t.Errorf("%s: the caller's settings were changed", name)
		}
	}
}

// If an answer has no usage, the whole reservation counts as possibly spent.
func TestAnswersWithoutUsageKeepTheirWorstCase(t *testing.T) {
	p := &recordingAccount{}
	client := wrap(t, &steps{}, middle.Config{Limited: true, Prices: middle.Prices{{Model: "m", Output: 1}}})
	if _, err := client.Chat(llms.WithAccount(t.Context(), p), llms.Request{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schemas.Payment{{AtRiskUSD: llms.DefaultMaxTokens / 1e6, Estimated: p.paid[0].Estimated}}, p.paid); diff != "" {
		t.Error(diff)
	}
}

// failingAccount is an account whose Begin returns the context calling, and whose End fails.
type failingAccount struct {
	recordingAccount
	calling context.Context
}

func (s *failingAccount) Begin(ctx context.Context, worst float64) (context.Context, error) {
	_, err := s.recordingAccount.Begin(ctx, worst)
	return s.calling, err
}

func (s *failingAccount) End(ctx context.Context, paid schemas.Payment) error {
	return errors.Join(s.recordingAccount.End(ctx, paid), syscall.ENOSPC)
}

// contextClient records the context of a call.
type contextClient struct {
	steps
	ctx context.Context
}

func (s *contextClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	s.ctx = ctx
	return s.steps.Chat(ctx, r)
}

// A call uses the context that Begin returns, and fails if End fails.
func TestCallUsesTheAccount(t *testing.T) {
	type key struct{}
	model, account := &contextClient{}, &failingAccount{calling: context.WithValue(t.Context(), key{}, "begun")}
	_, err := wrap(t, model, middle.Config{}).Chat(llms.WithAccount(t.Context(), account), llms.Request{})
	if !errors.Is(err, syscall.ENOSPC) || len(model.at) != 1 || len(account.paid) != 1 {
		t.Errorf("%d calls, %d payments, error %v", len(model.at), len(account.paid), err)
	}
	if model.ctx.Value(key{}) != "begun" {
		t.Error("the call did not use the account's context")
	}
}

// If the tape cannot record a failed call, the call is not retried, because the next
// answer would be paid for and lost as well.
func TestTapeErrorStopsRetries(t *testing.T) {
	model := &flakyClient{failures: 1}
	client := wrap(t, model, middle.Config{Retry: middle.RetryConfig{Initial: 1}})
	_, err := client.Chat(llms.WithTape(t.Context(), &memoryTape{err: syscall.ENOSPC}), llms.Request{})
	if !errors.Is(err, syscall.ENOSPC) || model.calls != 1 || llms.ClassOf(err) != "" {
		t.Errorf("%d calls, %v", model.calls, err)
	}
}

// A failed call uses tokens of the rate limit only if the server may have worked on it.
func TestTokensOfFailedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		free bool
	}{
		"refused":         {&llms.Error{Class: llms.ClassServer, Status: 500}, true},
		"unreachable":     {&llms.Error{Class: llms.ClassUnreachable}, true},
		"budget used up":  {llms.ErrBudget, true},
		"timeout":         {&llms.Error{Class: llms.ClassTimeout}, false},
		"gateway timeout": {&llms.Error{Class: llms.ClassTimeout, Status: 504}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &steps{errs: []error{c.err}}
				pace := middle.NewPace(middle.PaceConfig{TPM: 4000})
				client, err := middle.Wrap([]middle.Endpoint{{Client: s, Pace: pace}}, middle.Config{Retry: middle.RetryConfig{MaxTries: 1}})
				if err != nil {
					t.Fatal(err)
				}
				whole := llms.Request{Sampling: llms.Sampling{MaxTokens: new(1000)}} // a full bucket
				if _, err := client.Chat(t.Context(), whole); !errors.Is(err, c.err) {
					t.Fatal(err)
				}
				before := time.Now()
				if _, err := client.Chat(t.Context(), whole); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(before); (waited == 0) != c.free {
					t.Errorf("the next call waited %s", waited)
				}
			})
		})
	}
}

type panickingClient struct{ steps }

func (p *panickingClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	if len(p.at) == 0 {
		p.at = append(p.at, time.Now())
		panic("a bug")
	}
	return p.steps.Chat(ctx, r)
}

// A call that panics releases its slot, so that other calls do not wait forever.
func TestPanicReleasesThePace(t *testing.T) {
	client, err := middle.Wrap([]middle.Endpoint{{Client: &panickingClient{}, Pace: middle.NewPace(middle.PaceConfig{Parallel: 1})}}, middle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = client.Chat(t.Context(), llms.Request{})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.Chat(ctx, llms.Request{}); err != nil {
		t.Errorf("the next call failed: %v", err)
	}
}

// If a server reports no usage, the client estimates it. The estimate counts neither as
// usage nor as cost.
func TestMissingUsageIsEstimated(t *testing.T) {
	ask := llms.Request{Messages: []llms.Message{{Role: "user", Content: "What does the evening report say?"}}}
	for name, usage := range map[string]*schemas.Usage{"counted": {Prompt: 7, Completion: 3}, "not counted": nil} {
		p := &recordingAccount{}
		resp, err := wrap(t, &steps{usage: usage}, middle.Config{}).Chat(llms.WithAccount(t.Context(), p), ask)
		if err != nil {
			t.Fatal(err)
		}
		got, total := resp.Reply.Estimated, schemas.Calls{}.AddResult(p.paid[0])
		if usage != nil {
			if got != nil || total.EstimatedPrompt != 0 || total.Uncounted != 0 || total.Prompt != 7 {
				t.Errorf("%s: %+v, %+v", name, got, total)
			}
			continue
		}
		if want := int64(tokens.For("m").Prompt(ask)); got == nil || got.Prompt != want || resp.Reply.Usage != nil || resp.Reply.CostUSD != nil ||
			total.Uncounted != 1 || total.EstimatedPrompt != want || total.EstimatedCompletion != got.Completion || total.Prompt != 0 {
			t.Errorf("%s: %+v, %+v", name, got, total)
		}
	}
}
