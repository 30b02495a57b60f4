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

// Source iterates over all episodes, in any order, with or without their steps. A selection
// can iterate several times: once for groups, once for the predicates, and once for missing
// MinHash signatures.
type Source func(ctx context.Context, steps bool) iter.Seq2[Episode, error]

// Result is the result of a selection.
type Result struct {
	Kept     []string               // IDs of the kept episodes in table order
	Rows     []schemas.SelectionRow // one per episode, in table order
	Funnel   []schemas.FunnelStep   // predicates, dedup, select, caps; the Out of each step is the In of the next
	Info     schemas.SelectionInfo
	Episodes string // hash of the set of episodes (see episodesHash)
}

// Error is an error in the selection itself, rather than in the source.
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
