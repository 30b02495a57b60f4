package fleet

import (
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// Config of a run on a cluster.
type Config struct {
	pipeline.Config
	Conn *engine.Conn
	// Poll is how often a worker renews its entry in the registry and reads the phase of the run;
	// default 2s. The coordinator reads the budget twice as often, and a worker that waits for
	// money four times as often.
	Poll     time.Duration
	InFlight int    // how many jobs workers execute at once; default 65536
	Offer    []byte // what workers need to execute jobs of this run
}

func (c Config) withDefaults() Config {
	if c.Poll == 0 {
		c.Poll = 2 * time.Second
	}
	if c.InFlight == 0 {
		c.InFlight = 1 << 16
	}
	return c
}

// limits are those that one process enforces. The shared budget enforces the others.
func (c Config) limits() budget.Limits { return budget.Limits{Episode: c.EpisodeCost} }

// sharedLimits are those that the shared budget enforces.
func (c Config) sharedLimits() budget.Limits { return budget.Limits{Run: c.MaxCost, Task: c.TaskCost} }
