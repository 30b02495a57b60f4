package llms

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

// Account is what the calls of one episode are paid from. Whoever makes a call
// begins it here and ends it here, each try of a repeated call anew, so that no
// call is made whose worst case is not covered, and none is forgotten. One call
// at a time.
type Account interface {
	// Begin sets worst USD aside, waiting while other calls hold them, and
	// returns when the call is on record, with the context to make it under: a
	// call that has begun may come to its end where no further one may begin. An
	// error means that the call must not be made: ErrBudget where the episode has
	// used up its share.
	Begin(ctx context.Context, worst float64) (context.Context, error)
	// End settles the call that has begun.
	End(ctx context.Context, p schemas.Payment) error
	// Attempt tells the samples of one task apart, from 0.
	Attempt() int
	// FromCache notes a question that needed no call.
	FromCache()
}

type accountKey struct{}

// WithAccount has the calls under ctx paid from a. The account is in the context and
// not in the request so that no policy has to pass it on: a call cannot be made
// without it by mistake.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// AccountOf is the account of ctx; without one everything is free and forgotten.
func AccountOf(ctx context.Context) Account {
	if a, ok := ctx.Value(accountKey{}).(Account); ok {
		return a
	}
	return unaccounted{}
}

type unaccounted struct{}

func (unaccounted) Begin(ctx context.Context, _ float64) (context.Context, error) { return ctx, nil }
func (unaccounted) End(context.Context, schemas.Payment) error                    { return nil }
func (unaccounted) FromCache()                                                    {}
func (unaccounted) Attempt() int                                                  { return 0 }
