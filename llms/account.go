package llms

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

// Account pays for the calls of one episode. The client calls Begin before and End after
// each call, retries included, so that the budget covers the worst case of every call and
// every call is recorded. An Account is used for one call at a time.
type Account interface {
	// Begin reserves worst USD, the maximum cost of the call. It waits while reservations of
	// other calls leave too little of the budget. It records the call and returns the context
	// for it, because a call that has begun may finish after ctx ends. An error means that the
	// call must not be made; it is ErrBudget if the episode has used up its share.
	Begin(ctx context.Context, worst float64) (context.Context, error)
	// End replaces the reservation by the payment.
	End(ctx context.Context, p schemas.Payment) error
	// Attempt returns the number of the attempt at the task, from 0.
	Attempt() int
	// FromCache records a request that the cache answered.
	FromCache()
	// Waiting is called when a call begins to wait for something other than its answer. cause is
	// the failure of the last try; nil: there was none.
	Waiting(w Wait, cause error)
}

// Wait is what a call waits for before it is made.
type Wait int

// What a call waits for.
const (
	WaitRate  Wait = iota // the rate limits of its endpoint
	WaitRetry             // its next try
)

type accountKey struct{}

// WithAccount returns a context in which a pays for the calls. The account is in the context
// rather than in the request so that policies cannot forget to pass it on.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// AccountOf returns the account of ctx. If there is none, it returns an account that
// allows every call and records nothing.
func AccountOf(ctx context.Context) Account {
	if a, ok := ctx.Value(accountKey{}).(Account); ok {
		return a
	}
	return nopAccount{}
}

type nopAccount struct{}

func (nopAccount) Begin(ctx context.Context, _ float64) (context.Context, error) { return ctx, nil }
func (nopAccount) End(context.Context, schemas.Payment) error                    { return nil }
func (nopAccount) FromCache()                                                    {}
func (nopAccount) Waiting(Wait, error)                                           {}
func (nopAccount) Attempt() int                                                  { return 0 }
