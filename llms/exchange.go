package llms

import (
	"context"
	"time"
)

// Exchange is one call as bytes: the bodies of both directions, without headers.
type Exchange struct {
	At       time.Time // when it ended
	Request  []byte    // as sent
	Response []byte    // as received, nil where nothing came
	Status   int       // HTTP status, 0 if there was none
	Failure  string    // the class of the error, or what else kept it from an answer; "" if it was answered
}

// Tape keeps the exchanges of one episode. Safe for concurrent use.
type Tape interface {
	// Keep returns when the bytes are with the operating system.
	Keep(ex Exchange) error
}

type tapeKey struct{}

// WithTape has the calls under ctx kept on t.
func WithTape(ctx context.Context, t Tape) context.Context {
	return context.WithValue(ctx, tapeKey{}, t)
}

// TapeOf is the tape of ctx, nil without one.
func TapeOf(ctx context.Context) Tape {
	t, _ := ctx.Value(tapeKey{}).(Tape)
	return t
}
