package views

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// target is one row to be: the turns from one to before another are its
// completion, what stood before them its prompt.
type target struct{ from, to int }

// targets decides which rows a conversation gives, and notes what is lost. Every
// turn that may be trained on is in the completion of one row: of consecutive ones
// it is the same row, as long as each prompt begins with the one before it.
func targets(c *conversation, o sinks.ViewOptions, notes sinks.Notes) []target {
	n := len(c.turns)
	masked := func(t turn) bool { return t.masked(o) }
	if gold := slices.IndexFunc(c.turns, func(t turn) bool { return t.gold }); gold >= 0 && !o.AllowGold {
		notes["turns_cut_gold"] += n - gold
		n = gold
		if o.Mask == sinks.MaskDropEpisode {
			n = 0
		}
	}
	bad := slices.IndexFunc(c.turns[:n], masked)
	switch {
	case bad < 0:
	case o.Mask == sinks.MaskDropEpisode:
		notes["rows_dropped_masked"]++
		n = 0
	case o.Mask == sinks.MaskCut:
		notes["turns_cut_"+c.turns[bad].why()] += n - bad
		n = bad
	}
	var out []target
	for i, t := range c.turns[:n] {
		if masked(t) && o.Mask != sinks.MaskNone {
			notes["turns_masked_"+t.why()]++
			continue
		}
		last := len(out) - 1
		if last >= 0 && out[last].to == i && o.Mask != sinks.MaskSplitRows && c.extends(i) {
			out[last].to++
			continue
		}
		out = append(out, target{i, i + 1})
	}
	return out
}

// masked tells whether a turn must not be trained on.
func (t turn) masked(o sinks.ViewOptions) bool {
	return t.skip || t.mask != "" && !(o.AllowGold && t.gold)
}

// loss fills in which texts of a row are trained on and which are masked.
func (c *conversation) loss(row *sinks.Row, list []message, o sinks.ViewOptions, trained func(turn int) bool) {
	row.Trained = replies(list, trained)
	row.Masked = replies(list, func(i int) bool { return !trained(i) && c.turns[i].masked(o) })
}

// everyReply tells what trainers of whole rows train on: each reply that is not folded.
func (c *conversation) everyReply(o sinks.ViewOptions) func(turn int) bool {
	return func(i int) bool { return o.Mask != sinks.MaskContext || !c.turns[i].masked(o) }
}

// folded is a list for trainers that train on every reply. With the mask context, a
// masked turn and what answered it become text of the message before, so that the
// later turns keep their context and no reply of the row is one to leave out.
func (c *conversation) folded(list []message, o sinks.ViewOptions) []message {
	if o.Mask != sinks.MaskContext {
		return list
	}
	var out []message
	folding := false
	for _, m := range list {
		if m.Role == "assistant" {
			folding = c.turns[m.turn].masked(o)
		}
		if !folding {
			out = append(out, m)
			continue
		}
		if n := len(out); n == 0 || out[n-1].Role == "assistant" || out[n-1].Role == "system" {
			out = append(out, message{Role: "user", turn: -1})
		}
		last := &out[len(out)-1]
		last.Content = strings.TrimPrefix(last.Content+"\n\n"+m.told(), "\n\n")
	}
	return out
}

// told is a message in words, for a place where no message of its role can be.
func (m message) told() string {
	var parts []string
	if m.Content != "" {
		parts = append(parts, m.Role+": "+m.Content)
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, "assistant called "+c.Function.Name+": "+string(c.Function.Arguments))
	}
	return strings.Join(parts, "\n")
}

func (t turn) why() string {
	if t.skip {
		return "other"
	}
	return t.mask
}

// stretch is a row for trainers that mask single messages: a conversation up to a
// turn, and the turns in it that are trained on.
type stretch struct {
	target
	train map[int]bool
}

// stretches are the targets, those of one conversation together where its prompts
// extend each other. Every turn that may be trained on is trained on in one of them.
func stretches(c *conversation, o sinks.ViewOptions, notes sinks.Notes) []stretch {
	var out []stretch
	for _, t := range targets(c, o, notes) {
		last := len(out) - 1
		if last < 0 || o.Mask == sinks.MaskSplitRows || !c.runsOn(out[last].to, t.to) {
			out = append(out, stretch{target: t, train: map[int]bool{}})
			last++
		}
		out[last].to = t.to
		for i := t.from; i < t.to; i++ {
			out[last].train[i] = true
		}
	}
	return out
}

// runsOn tells whether the turns from one to before another extend those before.
func (c *conversation) runsOn(from, to int) bool {
	for i := from; i < to; i++ {
		if !c.extends(i) {
			return false
		}
	}
	return true
}
