package closure

import (
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// FillGrounding writes the columns about what the steps name without having seen it, and about the
// surprise of their targets. They need no reference fix. names holds the identifiers of the
// repository; nil if they are unknown. In an import, only what the episode shows at any time counts.
func FillGrounding(e *schemas.EpisodeRow, episode *metrics.Episode, tools []schemas.ToolSchema, names map[string]bool, isImport bool) error {
	c := NewClosure(tools, names)
	if isImport {
		c.existing = existingIn(episode)
	}
	steps, grounded, unseen := 0, 0, 0
	for i := range episode.Rows {
		r, lines := &episode.Rows[i], episode.Readings[i].Lines
		if r.Source != "agent" {
			c.Step(r, lines)
			continue
		}
		found, bits, isTargeted := c.step(r, lines)
		if isTargeted {
			r.SurpriseBits = &bits
			e.SurpriseBits = new(schemas.Value(e.SurpriseBits) + bits)
		}
		r.NUnseen = new(int32(len(found)))
		steps++
		unseen += len(found)
		if len(found) == 0 {
			grounded++
			continue
		}
		text, err := schemas.SortedJSON(found)
		if err != nil {
			return err
		}
		r.UnseenJSON = new(string(text))
	}
	if steps > 0 {
		e.NUnseen, e.GroundedShare = new(int32(unseen)), new(float64(grounded)/float64(steps))
	}
	return nil
}
