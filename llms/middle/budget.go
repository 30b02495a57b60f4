package middle

import (
	"fmt"
	"sync"

	"github.com/tracesmith/tracesmith/llms"
)

// Budget is the money of one run, shared by its clients. A call reserves its
// worst case before it is made and settles with what it cost, so the limit
// holds with any number of workers. A nil Budget has no limit. Safe for
// concurrent use.
type Budget struct {
	// MaxCost in USD; 0: no limit, spending is only counted. Set once.
	MaxCost float64

	mu              sync.Mutex
	spent, reserved float64
	refused         bool
}

// NewBudget starts a budget of which spent USD are gone already (a resumed run).
func NewBudget(maxCost, spent float64) *Budget {
	return &Budget{MaxCost: maxCost, spent: spent}
}

// Reserve sets worst USD aside, or returns llms.ErrBudget if they are not left.
// What was reserved must be settled.
func (b *Budget) Reserve(worst float64) (float64, error) {
	if b == nil {
		return worst, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.MaxCost > 0 && b.spent+b.reserved+worst > b.MaxCost {
		b.refused = true
		return 0, fmt.Errorf("%w: $%.4f of $%.4f spent, $%.4f reserved, the next call may cost $%.4f",
			llms.ErrBudget, b.spent, b.MaxCost, b.reserved, worst)
	}
	b.reserved += worst
	return worst, nil
}

// Settle turns a reservation into spending.
func (b *Budget) Settle(reserved, spent float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= reserved
	b.spent += spent
}

// Spent is the USD gone so far, and whether a call has been refused.
func (b *Budget) Spent() (usd float64, exhausted bool) {
	if b == nil {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent, b.refused
}
