package middle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// kept writes the bytes of each try, failed ones too, to the episode's tape, and
// their hashes into replies. It stands outside the account: what cannot be kept
// has been paid all the same.
type kept struct{ llms.Client }

func (k kept) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
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
	if lost := tape.Keep(ex); lost != nil {
		lost = fmt.Errorf("keeping what was said to the model server: %w", lost)
		if err != nil { // by its words alone: the next try could not be kept either
			lost = fmt.Errorf("%w; it failed: %v", lost, err)
		}
		return resp, lost
	}
	return resp, err
}
