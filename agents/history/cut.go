package history

import (
	"slices"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// keepRatio is the fraction of the limit, in tokens or turns, that a prompt fills after a cut. A
// cut removes much at once, so that the prompts of the next turns share a prefix that the server
// can cache.
const keepRatio = 0.6

// refusedRatio is the assumed ratio of the limit to the size of a refused prompt.
const refusedRatio = 0.9

// conversation computes how to shorten one conversation's next prompt.
type conversation struct {
	*Builder
	steps      []schemas.Step
	tools      []schemas.ToolSchema
	turns      [][]int // for each turn, the indexes of its steps in steps
	scaleCache float64 // the result of scale; 0 if not computed yet
}

func (b *Builder) conversation(steps []schemas.Step, tools []schemas.ToolSchema) *conversation {
	c := &conversation{Builder: b, steps: steps, tools: tools}
	last := -1
	for i := range steps {
		switch s := &steps[i]; {
		case s.Turn < 0:
		case last != s.Turn:
			last = s.Turn
			c.turns = append(c.turns, []int{i})
		default:
			c.turns[len(c.turns)-1] = append(c.turns[len(c.turns)-1], i)
		}
	}
	return c
}

// scale returns the ratio of the server's token count to the local one. It uses the last prompt of
// the conversation whose size the server reported. It ignores other conversations, so that it
// depends only on the record.
func (c *conversation) scale() float64 {
	if c.scaleCache > 0 {
		return c.scaleCache
	}
	c.scaleCache = tokens.DefaultRatio
	for i := len(c.steps) - 1; i >= 0; i-- {
		r := c.steps[i].Reply
		if r == nil || r.Usage == nil {
			continue
		}
		if ratio := tokens.Ratio(c.localCount(c.steps[:i], contextOpOf(r)), r.Usage.Prompt); ratio > 0 {
			c.scaleCache = ratio
			break
		}
	}
	return c.scaleCache
}

// contextOpOf returns the operation that a reply records.
func contextOpOf(r *schemas.Reply) schemas.ContextOp {
	if r == nil || r.Context == nil {
		return schemas.ContextOp{}
	}
	return *r.Context
}

// localCount returns the size of a prompt as the local tokenizer counts it.
func (c *conversation) localCount(steps []schemas.Step, op schemas.ContextOp) int {
	return c.counter.Prompt(llms.Request{Messages: Messages(steps, op), Tools: c.tools})
}

// size estimates the size of a prompt as the server counts it.
func (c *conversation) size(op schemas.ContextOp) int {
	return int(float64(c.localCount(c.steps, op)) * c.scale())
}

// nextOp returns the operation for the next prompt. It reuses the operation of the last prompt
// while the limits allow it.
func (c *conversation) nextOp() schemas.ContextOp {
	op := schemas.ContextOp{Style: c.style}
	if c.traits.NoSystem {
		op.SystemAs = "user"
	}
	for i := len(c.steps) - 1; i >= 0; i-- {
		if r := c.steps[i].Reply; r != nil {
			last := contextOpOf(r)
			op.Dropped, op.Note, op.Trimmed, op.Limit = last.Dropped, last.Note, last.Trimmed, last.Limit
			break
		}
	}
	if kept := len(c.keptTurns(op)); c.cfg.MaxSteps > 0 && kept > c.cfg.MaxSteps {
		op = c.drop(op, kept-max(1, int(float64(c.cfg.MaxSteps)*keepRatio)))
	}
	if limit := c.limit(op); limit > 0 && c.size(op) > limit {
		op = c.fit(op, limit)
	}
	return op
}

// limit returns the limit of a prompt in the server's tokens, or 0 if there is none.
func (c *conversation) limit(op schemas.ContextOp) int {
	limit := 0
	for _, l := range []int{c.cfg.MaxTokens, c.traits.ContextLimit - c.answerTokens, op.Limit} {
		if l > 0 && (limit == 0 || l < limit) {
			limit = l
		}
	}
	return limit
}

// minServerLimit is the smallest context limit, in tokens, that is plausible in a server's refusal.
const minServerLimit = 512

// afterRefusal returns the operation for a shorter prompt after the server has refused one.
// serverLimit is the context limit that the server reported, or 0. afterRefusal assumes that the
// prompt must shrink by a tenth, or by more if serverLimit requires it. ok is false if the prompt
// cannot be shortened.
func (c *conversation) afterRefusal(refused schemas.ContextOp, serverLimit int) (op schemas.ContextOp, ok bool) {
	refusedSize := c.size(refused)
	op = refused
	op.Limit = max(1, int(float64(refusedSize)*refusedRatio))
	if serverLimit >= minServerLimit {
		op.Limit = min(op.Limit, serverLimit-min(c.answerTokens, serverLimit/4))
	}
	op = c.fit(op, op.Limit)
	return op, c.size(op) < refusedSize
}

// fit drops the oldest turns until the prompt is below keepRatio of the limit. It always keeps the
// newest turn. If the prompt still exceeds the limit, fit trims the answers of that turn and the
// observations from before the first turn.
func (c *conversation) fit(op schemas.ContextOp, limit int) schemas.ContextOp {
	target := int(float64(limit) * keepRatio)
	for len(c.keptTurns(op)) > 1 && c.size(op) > target {
		op = c.drop(op, 1)
	}
	if c.size(op) > limit {
		op = c.trim(op, target)
	}
	return op
}

// keptTurns returns the turns that an operation shows.
func (c *conversation) keptTurns(op schemas.ContextOp) [][]int {
	first := 0
	for first < len(c.turns) && op.Drops(c.steps[c.turns[first][0]].Index) {
		first++
	}
	return c.turns[first:]
}

// drop omits n more turns, the oldest first.
func (c *conversation) drop(op schemas.ContextOp, n int) schemas.ContextOp {
	kept := c.keptTurns(op)
	last := kept[n-1]
	op.Note = Note
	op.Dropped = [][2]int{{c.steps[c.turns[0][0]].Index, c.steps[last[len(last)-1]].Index}}
	op.Trimmed = slices.DeleteFunc(slices.Clone(op.Trimmed), func(t schemas.Trim) bool { return op.Drops(t.Step) })
	return op
}
