package views

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// span is the part of a conversation that makes one row: the turns before to. The turns
// from from on are the completion. train holds the turns to train on.
type span struct {
	from, to int
	train    map[int]bool
}

// spans divides a conversation into rows, and counts the turns that no row trains on in
// notes. Every turn that may be trained on is in train of exactly one span. Turns share a
// row while each prompt begins with the previous one. A completion also ends at a turn
// that must not be trained on, because the loss is on the whole completion.
func spans(c *conversation, o sinks.ViewOptions, loss lossKind, notes sinks.Notes) []span {
	var out []span
	end := c.cutMasked(o, notes)
	for i, t := range c.turns[:end] {
		if t.masked(o) && o.Mask != sinks.MaskNone {
			notes["turns_masked_"+t.reason()]++
			continue
		}
		last := len(out) - 1
		if last < 0 || o.Mask == sinks.MaskSplitRows || loss == lossOnCompletion && out[last].to != i || !c.promptsExtend(out[last].to, i+1) {
			out = append(out, span{from: i, train: map[int]bool{}})
			last++
		}
		out[last].to = i + 1
		out[last].train[i] = true
	}
	return out
}

// cutMasked returns the number of turns after which the options end a conversation, because
// the next turn comes from the gold patch or must not be trained on. It is 0 if the options
// drop the conversation.
func (c *conversation) cutMasked(o sinks.ViewOptions, notes sinks.Notes) int {
	end := len(c.turns)
	if gold := slices.IndexFunc(c.turns, func(t turn) bool { return t.gold }); gold >= 0 && !o.AllowGold {
		notes["turns_cut_gold"] += end - gold
		end = gold
		if o.Mask == sinks.MaskDropEpisode {
			end = 0
		}
	}
	masked := slices.IndexFunc(c.turns[:end], func(t turn) bool { return t.masked(o) })
	switch {
	case masked < 0:
	case o.Mask == sinks.MaskDropEpisode:
		notes["rows_dropped_masked"]++
		end = 0
	case o.Mask == sinks.MaskCut:
		notes["turns_cut_"+c.turns[masked].reason()] += end - masked
		end = masked
	}
	return end
}

// masked reports whether a turn must not be trained on.
func (t turn) masked(o sinks.ViewOptions) bool {
	return t.skip || t.mask != "" && !(o.AllowGold && t.gold)
}

// reason returns the reason why a turn is masked, as part of a name in notes.
func (t turn) reason() string {
	if t.skip {
		return "other"
	}
	return t.mask
}

// promptsExtend reports whether the prompt of each of the turns [from, to) begins with the
// prompt of the previous turn, that is, whether no further steps were dropped.
func (c *conversation) promptsExtend(from, to int) bool {
	for i := from; i < to; i++ {
		if !slices.Equal(c.turns[i].op.Dropped, c.turns[i-1].op.Dropped) {
			return false
		}
	}
	return true
}

// foldMasked returns a list of messages for trainers that train on every reply. With the
// mask context, a masked turn and its answers become text of the previous message. Later
// turns thus keep their context, and every reply of the row may be trained on.
func (c *conversation) foldMasked(list []message, o sinks.ViewOptions) []message {
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
		last.Content = strings.TrimPrefix(last.Content+"\n\n"+m.asText(), "\n\n")
	}
	return out
}

// asText returns a message in the form in which foldMasked adds it to another message.
func (m message) asText() string {
	var parts []string
	if m.Content != "" {
		parts = append(parts, m.Role+": "+m.Content)
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, "assistant called "+c.Function.Name+": "+string(c.Function.Arguments))
	}
	return strings.Join(parts, "\n")
}
