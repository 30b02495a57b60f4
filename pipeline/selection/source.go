package selection

import (
	"context"
	"iter"

	"github.com/tracesmith/tracesmith/schemas"
)

// Episode is what a selection decides about.
type Episode struct {
	Row   schemas.EpisodeRow
	Steps []schemas.StepRow // in order; nil where they were not asked for
}

// Source hands out all episodes, in any order, with their steps or without. It is
// read once, and again where a recipe asks about groups or where near duplicates lack their signatures.
type Source func(ctx context.Context, steps bool) iter.Seq2[Episode, error]

// Result is what a selection decided about a set of episodes.
type Result struct {
	Kept     []string               // episode ids in table order
	Rows     []schemas.SelectionRow // one per episode, in table order
	Funnel   []schemas.FunnelStep   // predicates, dedup, select, caps; each Out is the next In
	Info     schemas.SelectionInfo
	Episodes string // SHA-256 of which episodes there were: see identity
}

// Error: a selection cannot decide about these episodes, by its own fault.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Reasons counts the episodes by their first reason for being left out.
func (r Result) Reasons() map[string]int {
	m := map[string]int{}
	for _, row := range r.Rows {
		if row.FirstReason != nil {
			m[*row.FirstReason]++
		}
	}
	return m
}
