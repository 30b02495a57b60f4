package env

import (
	"context"
	"time"
)

type answerKey struct{}

// AnswerBy returns a copy of ctx with the time by which the caller needs an answer.
// A sandbox that has not responded one second after end is treated as dead. Unlike a
// deadline, end does not cancel the context. It applies to every method of a sandbox
// and of its terminals.
func AnswerBy(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, end)
}

// AnswerEnd returns the time that the innermost AnswerBy set. ok is false if there is
// none.
func AnswerEnd(ctx context.Context) (end time.Time, ok bool) {
	end, ok = ctx.Value(answerKey{}).(time.Time)
	return end, ok
}
