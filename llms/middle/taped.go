package middle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// tapedClient records the bytes of each call, including failed calls, on the episode's tape,
// and writes the hashes of the bytes into the reply. It wraps payingClient because a call
// that cannot be recorded must still be paid for.
type tapedClient struct{ llms.Client }

func (c tapedClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	resp, err := c.Client.Chat(ctx, r)
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
	if tapeErr := tape.Record(ex); tapeErr != nil {
		tapeErr = fmt.Errorf("recording a model call: %w", tapeErr)
		if err != nil { // err is not wrapped, so that the call is not retried
			tapeErr = fmt.Errorf("%w; the call failed: %v", tapeErr, err)
		}
		return resp, tapeErr
	}
	return resp, err
}
