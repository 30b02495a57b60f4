package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// target is one row to be: the first upto turns; the last one is the only turn
// to train on if single.
type target struct {
	upto   int
	single bool
}

func checkOptions(o sinks.ViewOptions) (sinks.ViewOptions, error) {
	if o.Mask == "" {
		o.Mask = sinks.MaskCut
	}
	if !slices.Contains(sinks.Masks, o.Mask) {
		return o, fmt.Errorf("mask %q: choose one of %s", o.Mask, strings.Join(sinks.Masks, ", "))
	}
	return o, nil
}

// targets decides which rows a conversation gives to a trainer that trains on every
// assistant turn it sees, and notes what is lost.
func targets(c *conversation, o sinks.ViewOptions, notes sinks.Notes) []target {
	n := len(c.turns)
	masked := func(t turn) bool { return t.mask != "" && !(o.AllowGold && t.gold) }
	if gold := slices.IndexFunc(c.turns, func(t turn) bool { return t.gold }); gold >= 0 && !o.AllowGold {
		notes["turns_cut_gold"] += n - gold
		n = gold
		if o.Mask == sinks.MaskDropEpisode {
			n = 0
		}
	}
	bad := slices.IndexFunc(c.turns[:n], masked)
	var out []target
	switch o.Mask {
	case sinks.MaskSplitRows:
		for i, t := range c.turns[:n] {
			if masked(t) {
				notes["turns_masked_"+t.mask]++
				continue
			}
			out = append(out, target{upto: i + 1, single: true})
		}
	case sinks.MaskDropEpisode:
		if bad < 0 && n > 0 {
			out = whole(c, n, notes)
		}
	case sinks.MaskCut:
		if bad >= 0 {
			notes["turns_cut_"+c.turns[bad].mask] += n - bad
			n = bad
		}
		fallthrough
	default:
		if n > 0 {
			out = whole(c, n, notes)
		}
	}
	return out
}

// whole are rows of the first n turns: one, or where the model's prompts were cut
// one for each stretch between two cuts, so that every row is a prompt it saw. Of
// what a row shows, turns that an earlier row has ended with are trained on again.
func whole(c *conversation, n int, notes sinks.Notes) []target {
	var out []target
	for i, end := range c.stretches(n) {
		out = append(out, target{upto: end})
		if i == 0 {
			continue
		}
		for _, t := range c.turns[:out[i-1].upto] {
			if !c.turns[end-1].op.Drops(int(t.row.StepIndex)) {
				notes["turns_repeated_after_a_cut"]++
			}
		}
	}
	return out
}
