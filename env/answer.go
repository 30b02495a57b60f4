package env

import (
	"context"
	"time"
)

type answerKey struct{}

// AnswerBy sets when the caller needs its answer: a sandbox that has not responded
// a second after end is treated as dead. It does not cancel ctx. Like the deadline
// of a context, end holds for every method of a sandbox and its terminals.
func AnswerBy(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, end)
}

// AnswerEnd returns the time that AnswerBy set last.
func AnswerEnd(ctx context.Context) (end time.Time, ok bool) {
	end, ok = ctx.Value(answerKey{}).(time.Time)
	return end, ok
}
