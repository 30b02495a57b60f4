package history

import (
	"slices"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// keepRatio is what is left of a prompt, or of its turns, when it is cut: so much
// goes at once that many turns pass, and find their prefix in the server's cache,
// until the next cut.
const keepRatio = 0.6

// refusedRatio is the part of a refused prompt that is taken for the limit.
const refusedRatio = 0.9

// conversation is one question: how are these steps to be shown?
type conversation struct {
	*Builder
	steps      []schemas.Step
	tools      []schemas.ToolSchema
	turns      [][]int // positions in steps, by turn
	scaleCache float64 // see scale; 0: not looked for yet
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

// scale is the ratio of what the server counts to our count, from the last prompt
// of the conversation whose size was reported: the record alone decides, not what
// other conversations have learned.
func (c *conversation) scale() float64 {
	if c.scaleCache > 0 {
		return c.scaleCache
	}
	c.scaleCache = tokens.Unknown
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

func contextOpOf(r *schemas.Reply) schemas.ContextOp {
	if r == nil || r.Context == nil {
		return schemas.ContextOp{}
	}
	return *r.Context
}

// localCount is the size of a prompt by our count.
func (c *conversation) localCount(steps []schemas.Step, op schemas.ContextOp) int {
	return c.counter.Prompt(llms.Request{Messages: Messages(steps, op), Tools: c.tools})
}

// size is what the server will probably count for a prompt.
func (c *conversation) size(op schemas.ContextOp) int {
	return int(float64(c.localCount(c.steps, op)) * c.scale())
}

// nextOp is the operation of the next prompt: that of the last one, as long as it
// is within the limits.
func (c *conversation) nextOp() schemas.ContextOp {
	op := schemas.ContextOp{Style: c.style}
	if c.traits.NoSystem {
		op.SystemAs = "user"
	}
	for i := len(c.steps) - 1; i >= 0; i-- {
		if r := c.steps[i].Reply; r != nil {
			was := contextOpOf(r)
			op.Dropped, op.Note, op.Trimmed, op.Limit = was.Dropped, was.Note, was.Trimmed, was.Limit
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

// limit of a prompt in tokens, as the server counts them; 0 is none.
func (c *conversation) limit(op schemas.ContextOp) int {
	limit := 0
	for _, l := range []int{c.cfg.MaxTokens, c.traits.ContextLimit - c.answerTokens, op.Limit} {
		if l > 0 && (limit == 0 || l < limit) {
			limit = l
		}
	}
	return limit
}

// minServerLimit is the smallest limit of a model that a server's word is taken for.
const minServerLimit = 512

// afterRefusal is the operation after the server has refused a prompt: as if it had
// been too long by a tenth, or more where the limit that the server names (0:
// none) says so. ok is false where nothing is left to leave out.
func (c *conversation) afterRefusal(refused schemas.ContextOp, named int) (op schemas.ContextOp, ok bool) {
	was := c.size(refused)
	op = refused
	op.Limit = max(1, int(float64(was)*refusedRatio))
	if named >= minServerLimit {
		op.Limit = min(op.Limit, named-min(c.answerTokens, named/4))
	}
	op = c.fit(op, op.Limit)
	return op, c.size(op) < was
}

// fit drops the oldest turns until a stride below the limit is reached. The
// newest turn stays; where it does not fit, its answers are trimmed, and those
// from before the first turn.
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

// keptTurns are the turns that an operation shows.
func (c *conversation) keptTurns(op schemas.ContextOp) [][]int {
	first := 0
	for first < len(c.turns) && op.Drops(c.steps[c.turns[first][0]].Index) {
		first++
	}
	return c.turns[first:]
}

// drop leaves out the first n turns of those that are kept.
func (c *conversation) drop(op schemas.ContextOp, n int) schemas.ContextOp {
	kept := c.keptTurns(op)
	last := kept[n-1]
	op.Note = Note
	op.Dropped = [][2]int{{c.steps[c.turns[0][0]].Index, c.steps[last[len(last)-1]].Index}}
	op.Trimmed = slices.DeleteFunc(slices.Clone(op.Trimmed), func(t schemas.Trim) bool { return op.Drops(t.Step) })
	return op
}
