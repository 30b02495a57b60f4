package pipeline

import "github.com/tracesmith/tracesmith/sinks"

// Hooks let tests and the lab disturb a run. The zero value changes nothing.
type Hooks struct {
	// At is called with the name of each point that the program reaches.
	At func(point string)
	// Staging wraps the staging store.
	Staging func(sinks.Store) sinks.Store
}

// Points of a job in the order in which it reaches them. Those that begin with "logged" say that
// the step log has the entry.
const (
	pointClaimed  = "claimed"
	pointLogged   = "logged-" // and the kind of the entry
	pointAnswered = "answered-call"
	pointDone     = "done"
	pointAcked    = "acked"
)

// Reach calls At.
func (h Hooks) Reach(point string) {
	if h.At != nil {
		h.At(point)
	}
}
