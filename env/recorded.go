package env

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
)

type recordedKey struct{}

// WithRecorded marks a call as the repetition of one whose observation is known:
// an episode is taken up again, and its calls bring a fresh sandbox to the same
// place. A tool whose effects lie outside the sandbox must not have them twice:
// it answers with Recorded instead.
func WithRecorded(ctx context.Context, o schemas.Observation) context.Context {
	return context.WithValue(ctx, recordedKey{}, o)
}

// Recorded is what the call was answered with the first time, if this one is a
// repetition.
func Recorded(ctx context.Context) (schemas.Observation, bool) {
	o, ok := ctx.Value(recordedKey{}).(schemas.Observation)
	return o, ok
}
