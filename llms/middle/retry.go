package middle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v7"

	"github.com/tracesmith/tracesmith/llms"
)

// retryClient is the only layer that retries calls: the SDKs' retries are off, and the
// pipeline retries only whole jobs.
type retryClient struct {
	llms.Client
	cfg RetryConfig
}

// Chat retries retryable failures and writes into the reply the number of calls, and
// their time with the pauses between them. The final
// error keeps its class and says how many calls were made.
func (r *retryClient) Chat(ctx context.Context, req llms.Request) (llms.Response, error) {
	calls, start := 0, time.Now()
	resp, err := backoff.Retry(ctx, func() (llms.Response, error) {
		calls++
		resp, err := r.Client.Chat(ctx, req)
		e, ok := asError(err)
		switch {
		case err == nil:
			return resp, nil
		case !ok || !e.Retryable():
			return resp, backoff.Permanent(err)
		case e.RetryAfter > 0:
			return resp, backoff.RetryAfter(e.RetryAfter, err)
		}
		return resp, err
	},
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: r.cfg.Initial, MaxInterval: r.cfg.MaxInterval, Multiplier: 2, RandomizationFactor: 0.5,
		}),
		backoff.WithNotify(func(err error, _ time.Duration) { llms.AccountOf(ctx).Waiting(llms.WaitRetry, err) }),
		backoff.WithMaxTries(r.cfg.MaxTries), backoff.WithMaxElapsedTime(r.cfg.MaxElapsed))
	if err == nil {
		resp.Reply.LLMCalls, resp.Reply.Retries = calls, calls-1
		if calls > 1 && resp.Reply.LLMMillis != nil {
			resp.Reply.LLMMillis = new(time.Since(start).Milliseconds())
		}
		return resp, nil
	}
	if ctx.Err() != nil {
		return resp, fmt.Errorf("asking the model: %w", ctx.Err())
	}
	if re := backoff.AsRetryError(err); re != nil && re.LastErr != nil {
		err = re.LastErr
	}
	if e, ok := asError(err); ok {
		e.Tries = calls
	}
	return resp, err
}

func asError(err error) (*llms.Error, bool) { return errors.AsType[*llms.Error](err) }
