package synth

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// purse is what a run may spend on models. Safe for concurrent use.
type purse struct {
	mu          sync.Mutex
	limit       float64 // USD; 0 = none
	spent, held float64
	settled     chan struct{} // closed when a call has ended
}

func newPurse(limit, spent float64) *purse {
	return &purse{limit: limit, spent: spent, settled: make(chan struct{})}
}

// begin sets worst aside. It waits while calls under way hold what may be left.
func (p *purse) begin(ctx context.Context, worst float64) error {
	for {
		p.mu.Lock()
		if p.limit > 0 && p.spent+worst > p.limit {
			p.mu.Unlock()
			return fmt.Errorf("%w: %.4f of %.4f USD are spent, a call may cost %.4f", llms.ErrBudget, p.spent, p.limit, worst)
		}
		if p.limit <= 0 || p.spent+p.held+worst <= p.limit {
			p.held += worst
			p.mu.Unlock()
			return nil
		}
		wait := p.settled
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *purse) end(worst, spent float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= worst
	p.spent += spent
	close(p.settled)
	p.settled = make(chan struct{})
}

func (p *purse) total() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// account is the purse as one question sees it.
type account struct {
	purse *purse
	worst float64
	paid  schemas.Payment // of its last call, with what all before put at risk
}

// Begin implements llms.Account.
func (a *account) Begin(ctx context.Context, worst float64) (context.Context, error) {
	a.worst = worst
	return ctx, a.purse.begin(ctx, worst)
}

// End implements llms.Account.
func (a *account) End(_ context.Context, p schemas.Payment) error {
	a.purse.end(a.worst, p.Spent())
	p.AtRiskUSD += a.paid.AtRiskUSD
	a.paid = p
	return nil
}

// Attempt implements llms.Account.
func (a *account) Attempt() int { return 0 }

// FromCache implements llms.Account.
func (a *account) FromCache() {}

// modelError is a failure of a model server that its client's retries have not
// mended.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// unasked says that only the budget stands in the way.
func unasked(err error) bool { return errors.Is(err, llms.ErrBudget) }
