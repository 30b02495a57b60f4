package pipeline

import (
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Kinds of entries in a step log.
const (
	kindCall    = "call" // a model call is about to start
	kindPaid    = "paid" // a model call ended without a reply to record
	kindReply   = "reply"
	kindStep    = "step"
	kindRollout = "rollout" // the agent has ended; holds the episode without its steps
	kindVerdict = "verdict"
)

// rollout is the result of the agent's run.
type rollout struct {
	Episode  schemas.Episode `json:"episode"`  // without Steps
	Replayed int             `json:"replayed"` // how many of the first steps were replayed
}

type callEntry struct {
	Worst  float64          `json:"worst"`            // worst-case cost in USD
	Before *schemas.Payment `json:"before,omitempty"` // of the previous call, if no other entry has it
}

type replyEntry struct {
	Turn  int              `json:"turn"`
	Reply schemas.Reply    `json:"reply"`
	Paid  *schemas.Payment `json:"paid,omitempty"`
}

// callCount adds up the calls of a step log, entry by entry.
type callCount struct {
	calls  schemas.Calls
	open   bool    // the last call started and has not ended
	worst  float64 // worst-case cost of that call in USD
	failed bool    // the last call failed, so that the next one repeats it
}

func (c *callCount) add(e engine.LogEntry) error {
	var err error
	switch e.Kind {
	case kindCall:
		var call callEntry
		err = json.Unmarshal(e.Data, &call)
		c.end(call.Before)
		c.countLost()
		c.calls.Made++
		if c.failed {
			c.calls.Retried++
		}
		c.open, c.worst = true, call.Worst
	case kindPaid:
		var p schemas.Payment
		err = json.Unmarshal(e.Data, &p)
		c.end(&p)
	case kindReply:
		var r struct {
			Paid  *schemas.Payment `json:"paid"`
			Reply struct {
				FromCache bool `json:"from_cache"`
			} `json:"reply"`
		}
		err = json.Unmarshal(e.Data, &r)
		c.end(r.Paid)
		if r.Reply.FromCache {
			c.calls.FromCache++
		}
	}
	if err != nil {
		return fmt.Errorf("reading the step log: entry %s: %w", e.Kind, err)
	}
	return nil
}

func (c *callCount) end(p *schemas.Payment) {
	if p != nil {
		c.calls, c.open, c.failed = c.calls.AddResult(*p), false, p.Failed
	}
}

// countLost counts a call that never ended because its process died, at its worst-case cost.
func (c *callCount) countLost() {
	if c.open {
		c.calls.LostInFlight++
		c.calls.AtRiskUSD += c.worst
		c.open, c.failed = false, false
	}
}
