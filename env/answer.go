package env

import (
	"context"
	"time"
)

type answerKey struct{}

// AnswerBy returns a copy of ctx with the time by which the caller needs an answer from
// a sandbox. A sandbox that has not responded one second after end is treated as dead.
// Unlike a deadline, end does not cancel the context. It applies to every method of
// Sandbox and Terminal that gets the context.
func AnswerBy(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, end)
}

// AnswerEnd returns the time that AnswerBy last set for ctx. ok is false if it set none.
func AnswerEnd(ctx context.Context) (end time.Time, ok bool) {
	end, ok = ctx.Value(answerKey{}).(time.Time)
	return end, ok
}
