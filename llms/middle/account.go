package middle

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// payingClient pays for each call from the account of its episode and writes the cost into
// the reply.
type payingClient struct {
	llms.Client
	price      *Price // nil if it is unknown
	limited    bool   // accounts have a limit
	counts     counts
	hourWrites atomic.Bool     // the server has stored a prompt for an hour
	counter    *tokens.Counter // estimates the usage if the server does not report it
}

func (a *payingClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	worst := 0.0
	if a.limited && !a.price.Free {
		r = withLimit(r)
	}
	var price *Price
	if a.price != nil {
		rates := a.cacheRates(r)
		price = new(a.price.withRates(rates))
		worst = price.worstCase(a.counts.bound(r), r.Sampling, rates.Hour || a.hourWrites.Load())
	}
	account := llms.AccountOf(ctx)
	callCtx, err := account.Begin(ctx, worst)
	if err != nil {
		return llms.Response{}, err
	}
	resp, err := a.Client.Chat(callCtx, r)
	payment := schemas.Payment{Failed: true}
	if err != nil {
		payment.AtRiskUSD = atRisk(err, worst)
	} else {
		reply := &resp.Reply
		a.counts.report(r, reply.Usage)
		if reply.Usage == nil {
			reply.Estimated = a.estimate(r, *reply)
		} else if reply.Usage.CacheWrite1h > 0 {
			a.hourWrites.Store(true)
		}
		if reply.CostUSD == nil && price != nil {
			reply.CostUSD = price.Cost(reply.Usage)
		}
		payment = schemas.Payment{Usage: reply.Usage, Estimated: reply.Estimated, CostUSD: reply.CostUSD}
		if payment.CostUSD == nil { // the server reported no usage
			payment.AtRiskUSD = worst
		}
	}
	if endErr := account.End(ctx, payment); endErr != nil {
		return resp, errors.Join(err, endErr)
	}
	return resp, err
}

// cacheRates returns the vendor's rates for r, or rates of 1 if it has none.
func (a *payingClient) cacheRates(r llms.Request) llms.CacheRates {
	if b, ok := a.Client.(llms.CacheBiller); ok {
		return b.CacheRates(r)
	}
	return llms.CacheRates{Read: 1, Write: 1, WriteHour: 1}
}

// estimate counts the tokens of a call with the vocabulary that is closest to the model's.
func (a *payingClient) estimate(r llms.Request, reply schemas.Reply) *schemas.Usage {
	u := schemas.Usage{Prompt: int64(a.counter.Prompt(r)), Reasoning: int64(a.counter.Text(reply.Reasoning))}
	u.Completion = u.Reasoning + int64(a.counter.Message(llms.Message{Content: reply.Message, ToolCalls: reply.Calls}))
	return &u
}

// atRisk returns what a failed call may have cost: nothing if the server refused it or was
// not reached, and the worst case if a server may have answered and billed the call. That
// includes a gateway's report that its upstream failed (502, and Cloudflare's 520): the
// upstream may have received the call.
func atRisk(err error, worst float64) float64 {
	e, ok := asError(err)
	switch {
	case !ok: // canceled
	case e.Class == llms.ClassTimeout, e.Status == http.StatusBadGateway, e.Status == 520:
	case e.Status >= 300, e.Class == llms.ClassUnreachable, e.Class == llms.ClassBadRequest && e.Status == 0:
		return 0
	}
	return worst
}
