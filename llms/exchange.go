package llms

import (
	"context"
	"time"
)

// Exchange holds the bytes of one call: the bodies of its request and response, without headers.
type Exchange struct {
	At       time.Time // when it ended
	Request  []byte    // as sent
	Response []byte    // as received, nil if there was no response
	Status   int       // HTTP status, 0 if there was none
	Failure  string    // class of the error, or another reason; "" if the call was answered
}

// Tape records the exchanges of one episode. It is safe for concurrent use.
type Tape interface {
	// Record records an exchange. When it returns, the operating system has the bytes.
	Record(ex Exchange) error
}

type tapeKey struct{}

// WithTape returns a context whose calls are recorded on t.
func WithTape(ctx context.Context, t Tape) context.Context {
	return context.WithValue(ctx, tapeKey{}, t)
}

// TapeOf returns the tape of ctx, or nil if there is none.
func TapeOf(ctx context.Context) Tape {
	t, _ := ctx.Value(tapeKey{}).(Tape)
	return t
}
