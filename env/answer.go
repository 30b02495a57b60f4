package env

import (
	"context"
	"time"
)

type answerKey struct{}

// AnswerBy says when the caller needs its answer: a sandbox that does not even
// show signs of life a second after end is dead. It cancels nothing.
func AnswerBy(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, end)
}

// AnswerEnd is what AnswerBy said last.
func AnswerEnd(ctx context.Context) (end time.Time, ok bool) {
	end, ok = ctx.Value(answerKey{}).(time.Time)
	return end, ok
}
