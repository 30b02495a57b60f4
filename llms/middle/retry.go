package middle

import (
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v7"

	"github.com/tracesmith/tracesmith/llms"
)

// retrying is the only retry layer of the project: the SDK's is off, and the
// pipeline repeats jobs, not calls.
type retrying struct {
	llms.Client
	cfg RetryConfig
}

// Chat repeats retryable failures. The reply counts its calls; the error of a
// call that was given up keeps its class and says how often it was tried.
func (r *retrying) Chat(ctx context.Context, req llms.Request) (llms.Response, error) {
	calls := 0
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
		backoff.WithMaxTries(r.cfg.MaxTries), backoff.WithMaxElapsedTime(r.cfg.MaxElapsed))
	if err == nil {
		resp.Reply.LLMCalls, resp.Reply.Retries = calls, calls-1
		return resp, nil
	}
	if ctx.Err() != nil {
		return resp, fmt.Errorf("asking the model: %w", ctx.Err())
	}
	if re := backoff.AsRetryError(err); re != nil && re.LastErr != nil {
		err = re.LastErr
	}
	if calls > 1 {
		err = fmt.Errorf("giving up after %d calls: %w", calls, err)
	}
	return resp, err
}

func asError(err error) (*llms.Error, bool) { return errors.AsType[*llms.Error](err) }
