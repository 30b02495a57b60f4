package history

import (
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Values of Config.Trim.
const (
	trimStart  = "start"
	trimMiddle = "middle"
	trimEnd    = "end"
)

// minTrimmed is the smallest size, in local tokens, that an answer is trimmed to.
const minTrimmed = 64

// trim shortens the answers of the newest turn and the observations from before the first turn
// until the prompt has the target size. It cuts texts that are longer than a common level to that
// level, and leaves shorter ones whole.
func (c *conversation) trim(op schemas.ContextOp, target int) schemas.ContextOp {
	texts := map[int]string{} // by index in c.steps
	var order []int           // the keys of texts, sorted by size below
	for i := range c.steps {
		s := &c.steps[i]
		switch {
		case s.Observation == nil || op.Drops(s.Index):
		case s.Turn < 0:
			texts[i], order = schemas.Plain(s.Text), append(order, i)
		case s.Turn == c.steps[len(c.steps)-1].Turn:
			texts[i], order = Observed(*s), append(order, i)
		}
	}
	if len(order) == 0 {
		return op
	}
	// Measure the texts as shown now. They may be trimmed already if the server refused a prompt.
	sizes := map[int]int{}
	total := 0
	for _, i := range order {
		sizes[i] = c.counter.Text(op.Shown(c.steps[i].Index, texts[i]))
		total += sizes[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	budget := total - int(float64(c.size(op)-target)/c.scale()) // local tokens for the texts not handled yet
	op.Trimmed = slices.Clone(op.Trimmed)
	for n, i := range order {
		level := max(minTrimmed, budget/(len(order)-n))
		budget -= min(sizes[i], level)
		if sizes[i] <= level {
			continue
		}
		step := c.steps[i].Index
		op.Trimmed = slices.DeleteFunc(op.Trimmed, func(t schemas.Trim) bool { return t.Step == step })
		op.Trimmed = append(op.Trimmed, c.shorten(step, texts[i], level))
	}
	return op
}

// shorten returns a trim that reduces a text to at most level local tokens, including the trim's mark.
func (c *conversation) shorten(step int, text string, level int) schemas.Trim {
	runes := []rune(text)
	keep := len(runes)
	for {
		t := c.cutOut(step, len(runes), keep)
		n := c.counter.Text(t.Apply(text))
		if n <= level || keep == 0 {
			return t
		}
		keep = min(keep*level/n, keep*9/10)
	}
}

// cutOut returns a trim of a text of length characters that keeps keep of them.
func (c *conversation) cutOut(step, length, keep int) schemas.Trim {
	mark := fmt.Sprintf("[... %d characters omitted here to save space ...]", length-keep)
	switch c.cfg.Trim {
	case trimStart:
		return schemas.Trim{Step: step, From: 0, To: length - keep, Mark: mark + "\n"}
	case trimEnd:
		return schemas.Trim{Step: step, From: keep, To: length, Mark: "\n" + mark}
	}
	return schemas.Trim{Step: step, From: keep / 2, To: length - (keep - keep/2), Mark: "\n" + mark + "\n"}
}
