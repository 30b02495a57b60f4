package middle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// tapedClient records the bytes of each call, including failed ones, on the episode's tape,
// and writes their hashes into replies. It wraps payingClient because a call that cannot be
// recorded has still been paid.
type tapedClient struct{ llms.Client }

func (k tapedClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	resp, err := k.Client.Chat(ctx, r)
	if resp.Request == nil {
		return resp, err // nothing was sent
	}
	resp.Reply.RequestSHA256 = schemas.HashBytes(resp.Request)
	if resp.Raw != nil {
		resp.Reply.ResponseSHA256 = schemas.HashBytes(resp.Raw)
	}
	tape := llms.TapeOf(ctx)
	if tape == nil {
		return resp, err
	}
	ex := llms.Exchange{At: time.Now().UTC(), Request: resp.Request, Response: resp.Raw, Status: resp.Status}
	if err != nil {
		ex.Failure = cmp.Or(string(llms.ClassOf(err)), "cancelled")
	}
	if failed := tape.Keep(ex); failed != nil {
		failed = fmt.Errorf("recording a model call: %w", failed)
		if err != nil { // not wrapped, so that the call is not retried
			failed = fmt.Errorf("%w; the call failed: %v", failed, err)
		}
		return resp, failed
	}
	return resp, err
}
