package pipeline

import "github.com/tracesmith/tracesmith/sinks"

// Hooks lets tests and tracesmith-lab inject faults into a run. The zero value changes nothing.
type Hooks struct {
	// At is called with the name of each point that the program reaches.
	At func(point string)
	// Staging wraps the staging store.
	Staging func(sinks.Store) sinks.Store
}

// Points of a job in the order in which it reaches them.
const (
	pointClaimed  = "claimed"
	pointLogged   = "logged-" // followed by the kind of an entry that the step log now has
	pointAnswered = "answered-call"
	pointDone     = "done"
	pointAcked    = "acked"
)

// Reach calls At, if it is set.
func (h Hooks) Reach(point string) {
	if h.At != nil {
		h.At(point)
	}
}
