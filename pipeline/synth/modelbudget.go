package synth

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// modelBudget limits a run's spending on models. It is safe for concurrent use.
type modelBudget struct {
	mu          sync.Mutex
	limit       float64       // USD; 0 = no limit
	spent, held float64       // USD; held is reserved for running calls
	settled     chan struct{} // closed when a call has ended
}

func newModelBudget(limit, spent float64) *modelBudget {
	return &modelBudget{limit: limit, spent: spent, settled: make(chan struct{})}
}

// begin reserves worst USD for a call. If the limit leaves too little, it waits for running
// calls to end, which may cost less than they reserved. It returns llms.ErrBudget if even
// that would not help.
func (p *modelBudget) begin(ctx context.Context, worst float64) error {
	for {
		p.mu.Lock()
		if p.limit > 0 && p.spent+worst > p.limit {
			p.mu.Unlock()
			return fmt.Errorf("%w: %.4f of %.4f USD are spent, and a call may cost %.4f", llms.ErrBudget, p.spent, p.limit, worst)
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

// end releases the reservation of worst USD and records what the call cost.
func (p *modelBudget) end(worst, spent float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= worst
	p.spent += spent
	close(p.settled)
	p.settled = make(chan struct{})
}

// total returns the USD spent so far.
func (p *modelBudget) total() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// account charges the calls for one prompt to the budget.
type account struct {
	budget *modelBudget
	worst  float64
	paid   schemas.Payment // payment for the last call, plus the AtRiskUSD of earlier calls
}

// Begin implements llms.Account.
func (a *account) Begin(ctx context.Context, worst float64) (context.Context, error) {
	a.worst = worst
	return ctx, a.budget.begin(ctx, worst)
}

// End implements llms.Account.
func (a *account) End(_ context.Context, p schemas.Payment) error {
	a.budget.end(a.worst, p.Spent())
	p.AtRiskUSD += a.paid.AtRiskUSD
	a.paid = p
	return nil
}

// Attempt implements llms.Account.
func (a *account) Attempt() int { return 0 }

// FromCache implements llms.Account.
func (a *account) FromCache() {}

func (a *account) Waiting(llms.Wait, error) {}

// modelError is a failure of a model server that remained after the client's retries.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// overBudget reports whether the budget prevented a call.
func overBudget(err error) bool { return errors.Is(err, llms.ErrBudget) }
