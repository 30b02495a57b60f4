package llms

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

// Account pays for the calls of one episode. Each call, and each retry of one, calls
// Begin before and End after it, so that the budget covers the worst case of every call
// and every call is recorded. An Account is used for one call at a time.
type Account interface {
	// Begin reserves worst USD and waits while other calls hold that money. It returns
	// when the call is recorded, with the context for the call: a call that has begun
	// may finish even if no other may begin. An error means that the call must not be
	// made; it is ErrBudget if the episode has used up its share.
	Begin(ctx context.Context, worst float64) (context.Context, error)
	// End settles the call.
	End(ctx context.Context, p schemas.Payment) error
	// Attempt returns the number of the attempt at the task, from 0.
	Attempt() int
	// FromCache records a request that the cache answered.
	FromCache()
}

type accountKey struct{}

// WithAccount returns a context whose calls are paid by a. The account is in the context
// rather than in the request so that policies cannot forget to pass it on.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// AccountOf returns the account of ctx. If there is none, it returns an account that
// allows and records nothing.
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
func (nopAccount) Attempt() int                                                  { return 0 }
