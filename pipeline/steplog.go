package pipeline

import (
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Kinds of entries in a step log.
const (
	kindCall    = "call" // a call to a model is about to be made
	kindPaid    = "paid" // a call ended without a reply to record
	kindReply   = "reply"
	kindStep    = "step"
	kindRollout = "rollout" // the episode without its steps: the agent has ended
	kindVerdict = "verdict"
)

// rollout is the result of the agent's run.
type rollout struct {
	Episode  schemas.Episode `json:"episode"`  // without Steps
	Replayed int             `json:"replayed"` // how many of the first steps were replayed
}

// callEntry announces a call. Before is the end of the previous call, if no other entry has it.
type callEntry struct {
	Worst  float64          `json:"worst"`
	Before *schemas.Payment `json:"before,omitempty"`
}

type replyEntry struct {
	Turn  int              `json:"turn"`
	Reply schemas.Reply    `json:"reply"`
	Paid  *schemas.Payment `json:"paid,omitempty"`
}

// callCount adds up the calls of a step log, entry by entry.
type callCount struct {
	calls  schemas.Calls
	open   bool // the last call is announced and has no end
	worst  float64
	failed bool
}

func (c *callCount) add(e engine.LogEntry) error {
	var err error
	switch e.Kind {
	case kindCall:
		var call callEntry
		err = json.Unmarshal(e.Data, &call)
		c.end(call.Before)
		c.lose()
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
		c.calls, c.open, c.failed = c.calls.Ended(*p), false, p.Failed
	}
}

// lose counts a call that has no end because its process died. It costs its worst case.
func (c *callCount) lose() {
	if c.open {
		c.calls.LostInFlight++
		c.calls.AtRiskUSD += c.worst
		c.open, c.failed = false, false
	}
}
