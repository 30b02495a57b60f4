package fleet

import (
	"cmp"
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config configures a run on a cluster.
type Config struct {
	pipeline.Config
	Conn *engine.Conn
	// Poll is the interval at which a worker renews its entry in the registry and reads the phase
	// of the run; default 2s. The coordinator reads the budget twice as often, and a worker that
	// waits for budget does so four times as often.
	Poll     time.Duration
	InFlight int    // how many jobs all workers together execute at once; default 65536
	RunSpec  []byte // the data that workers need to execute jobs of this run
}

// specName returns the name under which RunSpec is stored.
func (c Config) specName() string { return "offer-" + schemas.HashBytes(c.RunSpec)[:16] }

func (c Config) withDefaults() Config {
	c.Poll = cmp.Or(c.Poll, 2*time.Second)
	c.InFlight = cmp.Or(c.InFlight, 1<<16)
	return c
}

// limits returns the cost limits that each process enforces. The shared budget enforces the others.
func (c Config) limits() budget.Limits { return budget.Limits{Episode: c.EpisodeCost} }

// sharedLimits returns the cost limits that the shared budget enforces.
func (c Config) sharedLimits() budget.Limits { return budget.Limits{Run: c.MaxCost, Task: c.TaskCost} }
