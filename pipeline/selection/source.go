package selection

import (
	"context"
	"iter"

	"github.com/tracesmith/tracesmith/schemas"
)

// Episode is one episode to select.
type Episode struct {
	Row   schemas.EpisodeRow
	Steps []schemas.StepRow // in order; nil unless requested
}

// Source iterates over all episodes, in any order, with or without their steps. A
// selection reads it once, and again if it needs groups or missing MinHash signatures.
type Source func(ctx context.Context, steps bool) iter.Seq2[Episode, error]

// Result is the result of a selection.
type Result struct {
	Kept     []string               // episode ids in table order
	Rows     []schemas.SelectionRow // one per episode, in table order
	Funnel   []schemas.FunnelStep   // predicates, dedup, select, caps; each Out is the next In
	Info     schemas.SelectionInfo
	Episodes string // SHA-256 of the set of episodes: see identity
}

// Error is an error of the selection itself, not of the source.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Reasons counts the rejected episodes by their first reason.
func (r Result) Reasons() map[string]int {
	m := map[string]int{}
	for _, row := range r.Rows {
		if row.FirstReason != nil {
			m[*row.FirstReason]++
		}
	}
	return m
}
